# fish completion for runbook-ask; install as /usr/share/fish/vendor_completions.d/runbook-ask.fish

# Options end at the first word of the question.
function __runbook_ask_before_question
    set -l wants no
    for word in (commandline -opc)[2..-1]
        if test $wants = yes
            set wants no
            continue
        end
        switch $word
            case --
                return 1
            case -k --scope --timeout --wrong
                set wants yes
            case '-*'
            case '*'
                return 1
        end
    end
    return 0
end

complete -c runbook-ask -f
complete -c runbook-ask -n __runbook_ask_before_question -s k -x -a '1 3 5 10 20' -d 'name N sections'
complete -c runbook-ask -n __runbook_ask_before_question -l scope -x -a repo: -d 'only below this path, or repo:NAME'
complete -c runbook-ask -n __runbook_ask_before_question -l json -d 'print the reply as JSON'
complete -c runbook-ask -n __runbook_ask_before_question -l cmd -d 'print only the command block, never run it'
complete -c runbook-ask -n __runbook_ask_before_question -l open -d 'print only the link of the first citation'
complete -c runbook-ask -n __runbook_ask_before_question -l follow-up -d 'ask in the session of the last reply'
complete -c runbook-ask -n __runbook_ask_before_question -l timeout -x -a '5 20 60' -d 'give up on a daemon after this many seconds'
complete -c runbook-ask -n __runbook_ask_before_question -l wrong -x -d 'report the last reply as wrong'
complete -c runbook-ask -n __runbook_ask_before_question -s h -l help -d 'print help'
complete -c runbook-ask -n __runbook_ask_before_question -l version -d 'print the version'

complete -c runbook-ask -n '__fish_is_first_arg' -a setup -d 'snippet for an agent\'s instructions file'
complete -c runbook-ask -n '__fish_seen_subcommand_from setup' -l for -x -a 'claude cursor codex copilot gemini opencode' -d 'for this agent'
complete -c runbook-ask -n '__fish_seen_subcommand_from setup' -l write -d 'put it into the agent\'s file here'
complete -c runbook-ask -n '__fish_seen_subcommand_from setup' -l remove -d 'take it out again'
complete -c runbook-ask -n '__fish_seen_subcommand_from setup' -l file -r -F -d 'another file'
