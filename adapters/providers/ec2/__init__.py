"""The provider ``ec2``: machines of any EC2-compatible API, as scripts of the version 2 contract.

``xce provider install ec2 DIR`` writes scripts that run ``python -m xce.adapters.providers.ec2 SCRIPT -f FILE``. It keeps nothing of
its own: what belongs to a request or a return is in the tags of the machines, so any host with the configuration can go on. The
extra ``xce[ec2]`` brings the client library.
"""
