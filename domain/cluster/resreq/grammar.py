"""The grammar of the requirement language, for lark's LALR parser with its contextual lexer.

It is a constant rather than a file: it is found wherever the module is, and nothing is read at run time.
Terminals with a leading underscore carry no value. What a word means (a number, a reserved word) is decided
by ``reading``, which can say more about it than a grammar.
"""

from typing import Final

GRAMMAR: Final = r"""
start: request
     | compound
     | alternatives

alternatives: alternative (_OR alternative)*
?alternative: _LBRACE request _RBRACE
            | _LBRACE compound _RBRACE

compound: part (_PLUS part)*
part: COUNT _STAR _LBRACE request _RBRACE

request: section*
       | any_of section*         -> request_with_selection

?section: SELECT _LSQB any_of _RSQB                    -> select
        | RUSAGE _LSQB usage (_separator usage)* _RSQB -> rusage
        | SPAN _LSQB spread _RSQB                      -> span
        | SAME _LSQB name (_COLON name)* _RSQB         -> same
        | ORDER _LSQB key (_COLON key)* _RSQB          -> order
        | EXCLUSIVE                                    -> exclusive

?any_of: all_of (_OR all_of)*
?all_of: unary (_AND unary)*
?unary: NOT unary               -> negation
      | LPAR any_of _RPAR       -> group
      | DEFINED LPAR name _RPAR -> defined
      | name COMPARE VALUE      -> compare_word
      | name COMPARE QUOTED     -> compare_text
      | name                    -> flag

usage: name _EQUALS AMOUNT
     | name _EQUALS AMOUNT _SLASH PER
_separator: _COMMA | _COLON
spread: HOSTS _EQUALS WHOLE -> spread_hosts
      | PTILE _EQUALS WHOLE -> spread_ptile
key: name        -> ascending
   | _MINUS name -> descending
name: NAME | QUOTED

SELECT: "select"
RUSAGE: "rusage"
SPAN: "span"
SAME: "same"
ORDER: "order"
EXCLUSIVE: "exclusive"
DEFINED: "defined"
HOSTS: "hosts"
PTILE: "ptile"
PER: "task" | "host" | "job"

NAME: /[A-Za-z_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?/
VALUE: /[A-Za-z0-9_.+:\/@-]+/
AMOUNT: /[A-Za-z0-9_.+-]+/
WHOLE: /[A-Za-z0-9_.+-]+/
COUNT: /[0-9]+/
QUOTED: /"[^"\\\x00-\x1f\x7f]*(?:\\["'\\][^"\\\x00-\x1f\x7f]*)*"/
      | /'[^'\\\x00-\x1f\x7f]*(?:\\["'\\][^'\\\x00-\x1f\x7f]*)*'/
COMPARE: /==|!=|<=|>=|<|>/

NOT: "!"
LPAR: "("
_RPAR: ")"
_AND: "&&"
_OR: "||"
_LSQB: "["
_RSQB: "]"
_LBRACE: "{"
_RBRACE: "}"
_PLUS: "+"
_STAR: "*"
_COMMA: ","
_COLON: ":"
_EQUALS: "="
_SLASH: "/"
_MINUS: "-"

%ignore /[ \t\r\n]+/
"""
