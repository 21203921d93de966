"""What every script begins with: functions of the shell that wait, stop with a sentence, and keep what a scaler had."""

from __future__ import annotations

import shlex
from typing import Final

from planner.manifests.orders import FORMER_BOUNDS, FORMER_PAUSE, PAUSED

__all__ = ["functions", "word"]


def word(text: object) -> str:
    """One word of the shell, whatever is in it."""
    return shlex.quote(str(text))


def functions(waves: int) -> str:
    """The functions, for a script of so many waves."""
    return _FUNCTIONS.replace("@WAVES@", str(waves))


def _annotation(key: str) -> str:
    return "{.metadata.annotations." + key.replace(".", r"\.") + "}"


_FUNCTIONS: Final = rf"""
# FROM_WAVE=N goes on with a wave; CONFIRMED_N=1 says that what wave N could not start is ready, --assume-done says so
# of all waves; POLL_S is the time between two looks.
waves=@WAVES@ wave=0 left='' from=${{FROM_WAVE:-1}} poll=${{POLL_S:-5}} assumed=''
for argument in "$@"; do
  case $argument in
    --assume-done) assumed=1 ;;
    *) echo "unknown argument: $argument" >&2; exit 64 ;;
  esac
done
stop() {{ # CODE SENTENCE
  echo "stopped in wave $wave of $waves: $2. Go on with FROM_WAVE=$wave." >&2
  exit "$1"
}}
begin() {{ # WAVE
  [ "$1" -ge "$from" ] || return 1
  wave=$1
  echo "wave $wave of $waves"
}}
confirmed() {{ # WAVE WHAT
  eval "answer=\${{CONFIRMED_$1:-}}"
  [ "$answer" = 1 ] || [ -n "$assumed" ] || stop 5 \
    "it goes on from wave $1, which needs what this script cannot do: $2. Nothing of this wave was done; once that is ready, set CONFIRMED_$1=1"
}}
field() {{ # JSONPATH OBJECT OPTIONS...
  path=$1 object=$2
  shift 2
  found=$(kubectl "$@" get "$object" -o "jsonpath=$path") || return 1
  echo "${{found:-0}}"
}}
asks() {{ # REPLICAS OBJECT OPTIONS...: whether it asks for so many already
  replicas=$1 object=$2
  shift 2
  found=$(kubectl "$@" get "$object" -o 'jsonpath={{.spec.replicas}}') && [ "$found" = "$replicas" ]
}}
has_ready() {{ # REPLICAS OBJECT OPTIONS...
  replicas=$1
  shift
  found=$(field '{{.status.readyReplicas}}' "$@") && [ "$found" -ge "$replicas" ]
}}
has_no_more() {{ # REPLICAS PODS LABELS OBJECT OPTIONS...: pods that are ending count
  replicas=$1 pods=$2 labels=$3 object=$4
  shift 4
  found=$(field '{{.status.replicas}}' "$object" "$@") && [ "$found" -le "$replicas" ] || return 1
  found=$(kubectl "$@" get pods -l "$labels" --field-selector=status.phase!=Failed,status.phase!=Succeeded -o name) || return 1
  [ "$(echo "$found" | grep -c .)" -le "$pods" ]
}}
within() {{ # SECONDS SENTENCE CHECK...
  limit=$(($(date +%s) + $1)) sentence=$2
  shift 2
  until "$@"; do
    [ "$(date +%s)" -lt "$limit" ] || stop 1 "$sentence"
    sleep "$poll"
  done
}}
gone() {{ # SECONDS SENTENCE REPLICAS PODS LABELS OBJECT OPTIONS...: SECONDS and the grace period of its pods
  seconds=$1 sentence=$2 replicas=$3 pods=$4 labels=$5 object=$6
  shift 6
  [ -n "$labels" ] || labels=$(kubectl "$@" get "$object" --subresource=scale -o 'jsonpath={{.status.selector}}') || labels=''
  [ -n "$labels" ] || stop 1 "$object does not say which pods are its own, so nobody can tell when they are gone"
  path='{{.spec.template.spec.terminationGracePeriodSeconds}}{{.spec.leaderWorkerTemplate.workerTemplate.spec.terminationGracePeriodSeconds}}'
  grace=$(field "$path" "$object" "$@") || grace=0
  within $((seconds + grace)) "$sentence" has_no_more "$replicas" "$pods" "$labels" "$object" "$@"
}}
hold_hpa() {{ # COUNT OBJECT OPTIONS...: both bounds in one patch, with a record of the former ones
  count=$1 object=$2
  shift 2
  former=$(kubectl "$@" get "$object" -o 'jsonpath={_annotation(FORMER_BOUNDS)}')
  [ -n "$former" ] || former=$(kubectl "$@" get "$object" -o 'jsonpath={{.spec.minReplicas}}:{{.spec.maxReplicas}}')
  case $former in :*) former=1$former ;; esac
  kubectl "$@" patch "$object" --type=merge -p \
    '{{"metadata": {{"annotations": {{"{FORMER_BOUNDS}": "'"$former"'"}}}}, "spec": {{"minReplicas": '"$count"', "maxReplicas": '"$count"'}}}}'
}}
free_hpa() {{ # OBJECT OPTIONS...: the recorded bounds, and the record goes
  object=$1
  shift
  former=$(kubectl "$@" get "$object" -o 'jsonpath={_annotation(FORMER_BOUNDS)}')
  case $former in
    '' | :* | *: | *[!0-9:]* | *:*:*)
      echo "$object has no record of its bounds from before the plan: it stays held. Write them back by hand." >&2
      left=1
      ;;
    *:*)
      kubectl "$@" patch "$object" --type=merge -p \
        '{{"metadata": {{"annotations": {{"{FORMER_BOUNDS}": null}}}}, "spec": {{"minReplicas": '"${{former%:*}}"', "maxReplicas": '"${{former#*:}}"'}}}}'
      ;;
    *)
      echo "$object has a record of its bounds that is none: $former. It stays held. Write them back by hand." >&2
      left=1
      ;;
  esac
}}
hold_keda() {{ # COUNT OBJECT OPTIONS...: paused at a count, with a record of whether it was paused before
  count=$1 object=$2
  shift 2
  former=$(kubectl "$@" get "$object" -o 'jsonpath={_annotation(FORMER_PAUSE)}')
  [ -n "$former" ] || former=$(kubectl "$@" get "$object" -o 'jsonpath={_annotation(PAUSED)}')
  kubectl "$@" annotate "$object" --overwrite "{PAUSED}=$count" "{FORMER_PAUSE}=${{former:-none}}"
}}
free_keda() {{ # OBJECT OPTIONS...: as it was before the plan, and the record goes
  object=$1
  shift
  former=$(kubectl "$@" get "$object" -o 'jsonpath={_annotation(FORMER_PAUSE)}')
  case $former in
    none) kubectl "$@" annotate "$object" "{PAUSED}-" "{FORMER_PAUSE}-" ;;
    '' | *[!0-9]*)
      echo "$object has no record of whether it was paused before the plan: it stays paused." >&2
      echo "By hand: kubectl $* annotate $object {PAUSED}-" >&2
      left=1
      ;;
    *) kubectl "$@" annotate "$object" --overwrite "{PAUSED}=$former" "{FORMER_PAUSE}-" ;;
  esac
}}
"""
