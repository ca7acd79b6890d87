# bash completion for runbook-ask; install as /usr/share/bash-completion/completions/runbook-ask

_runbook_ask() {
  local current=$2 previous=$3 word
  COMPREPLY=()
  # Options end at the first word of the question.
  local i=1 wants=no
  while [ "$i" -lt "$COMP_CWORD" ]; do
    word=${COMP_WORDS[i]}
    if [ "$wants" = yes ]; then
      wants=no
    else
      case $word in
        --) return ;;
        -k | --scope | --timeout | --wrong) wants=yes ;;
        -* | setup) ;;
        *) return ;;
      esac
    fi
    i=$((i + 1))
  done
  if [ "${COMP_WORDS[1]:-}" = setup ]; then
    case $previous in
      --for)
        mapfile -t COMPREPLY < <(compgen -W 'claude cursor codex copilot gemini opencode' -- "$current")
        ;;
      --file) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
      *) mapfile -t COMPREPLY < <(compgen -W '--for --write --remove --file --help' -- "$current") ;;
    esac
    return
  fi
  case $previous in
    -k) mapfile -t COMPREPLY < <(compgen -W '1 3 5 10 20' -- "$current"); return ;;
    --timeout) mapfile -t COMPREPLY < <(compgen -W '5 20 60' -- "$current"); return ;;
    --scope) mapfile -t COMPREPLY < <(compgen -W 'repo:' -- "$current"); return ;;
    --wrong) return ;;
  esac
  case $current in
    -*)
      mapfile -t COMPREPLY < <(compgen -W \
        '-k --scope --json --cmd --open --follow-up --timeout --wrong --help --version --' -- "$current")
      ;;
  esac
}

complete -F _runbook_ask runbook-ask
