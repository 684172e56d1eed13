// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the shell expands them.
import { Argument, Command } from 'commander'
import { give } from './terminal.ts'

const SHELLS = ['bash', 'zsh'] as const

export const completionCommand = (): Command =>
  new Command('completion')
    .addArgument(new Argument('[shell]', 'whose completion').choices(SHELLS).default('bash'))
    .action((shell: (typeof SHELLS)[number], _options: object, self: Command) => {
      const words = wordsOf(self.parent ?? self)
      give(`${(shell === 'zsh' ? forZsh(words) : forBash(words)).join('\n')}\n`)
    })

/** The words that may follow each command: the names of its parts, and its options. The key is its path. */
function wordsOf(program: Command): ReadonlyMap<string, readonly string[]> {
  const words = new Map<string, readonly string[]>()
  const visit = (command: Command, path: string): void => {
    const options = command.options.map(({ long }) => long ?? '').filter(Boolean)
    words.set(path, [...command.commands.map(child => child.name()), ...options, '--help'])
    for (const child of command.commands) visit(child, path === '' ? child.name() : `${path} ${child.name()}`)
  }
  visit(program, '')
  return words
}

const casesOf = (words: ReadonlyMap<string, readonly string[]>): string[] =>
  [...words].map(([path, next]) => `    ${JSON.stringify(path)}) next=${JSON.stringify(next.join(' '))} ;;`)

const forBash = (words: ReadonlyMap<string, readonly string[]>): string[] => [
  '# Completion of strowger for bash: source <(strowger completion)',
  '_strowger() {',
  '  local at="" word next=""',
  '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
  '    case "$word" in -*) ;; *) at="${at:+$at }$word" ;; esac',
  '  done',
  '  case "$at" in',
  ...casesOf(words),
  '  esac',
  '  COMPREPLY=($(compgen -W "$next" -- "${COMP_WORDS[COMP_CWORD]}"))',
  '}',
  'complete -F _strowger strowger bin/strowger',
]

/** `path` is the search path of zsh, so no variable has that name. */
const forZsh = (words: ReadonlyMap<string, readonly string[]>): string[] => [
  '#compdef strowger bin/strowger',
  '# Completion of strowger for zsh: source <(strowger completion zsh)',
  '_strowger() {',
  '  local at="" word next=""',
  '  for word in "${(@)words[2,CURRENT-1]}"; do',
  '    case "$word" in -*) ;; *) at="${at:+$at }$word" ;; esac',
  '  done',
  '  case "$at" in',
  ...casesOf(words),
  '  esac',
  '  compadd -- ${=next}',
  '}',
  'compdef _strowger strowger bin/strowger',
]
