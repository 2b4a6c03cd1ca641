"""Methods for many points: cost linear in n, no n × n array."""
