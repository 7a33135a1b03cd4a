"""FlexNet: the text of ``lmutil lmstat -a``, read for its grammar, and the tool that prints it."""
