import { Command } from 'commander'
import { ConfigError, readSettings, VARIABLES } from '../core/runtime/config.ts'
import { fileVariable } from '../core/runtime/secret-files.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { unknownVariables } from '../core/runtime/unknown-variables.ts'
import type { Variable } from '../core/runtime/variables.ts'
import { READ_BY } from './child-environment.ts'
import { type Installation, thisInstallation } from './installation.ts'
import { orSayWhy } from './say.ts'
import { type Column, table } from './table.ts'
import { give, show, tell, terminal } from './terminal.ts'

interface Effective {
  readonly name: string
  /** Of a secret only `(set)`; null for none. */
  readonly value: string | null
  readonly from: string
  readonly meaning: string
}

/** The value of each variable that counts, with where it comes from. */
function effective({ env, origin }: Installation): Effective[] {
  return Object.values(VARIABLES).map(({ name, default: fallback, secret, meaning }) => {
    const given = env[name]?.trim() || fallback
    const value = given === '' ? null : secret ? '(set)' : given
    return { name, value, from: name === VARIABLES.data.name ? '' : origin(name), meaning }
  })
}

/** The lines of a table of the configuration, for a screen of this width. */
export const configurationLines = (found: Installation, width = Number.POSITIVE_INFINITY): string[] =>
  table(effective(found), COLUMNS, width)

const COLUMNS: readonly Column<Effective>[] = [
  { title: 'VARIABLE', text: ({ name }) => name, least: 20 },
  { title: 'VALUE', text: ({ value }) => value ?? '-', least: 12 },
  { title: 'FROM', text: ({ from }) => from, rank: 1 },
  { title: 'MEANING', text: ({ meaning }) => meaning, least: 24, rank: 1 },
]

/** What there is to know of one variable. `key` may be written small, with dashes, and without the prefix. */
export function explained(key: string, found: Installation): string[] {
  const upper = key.trim().toUpperCase().replace(/[-.]/g, '_')
  const name = upper.startsWith('STROWGER_') ? upper : `STROWGER_${upper}`
  const wanted = Object.entries(VARIABLES).find(([, one]) => one.name === name)
  if (!wanted) throw new ConfigError(unknownVariables({ [name]: key })[0] ?? `${name} is no variable of ours`)
  const [short, variable] = wanted as [keyof typeof VARIABLES, Variable<unknown>]
  const now = effective(found).find(one => one.name === name)
  const readers = Object.entries(READ_BY).flatMap(([process, names]) => (names.includes(short) ? [process] : []))
  const rows: [string, string][] = [
    ['meaning', variable.meaning],
    ['default', variable.default === '' ? 'unset' : variable.default],
    ['value', `${now?.value ?? 'unset'}${now?.from ? ` (${now.from})` : ''}`],
    ['read by', ['supervisor', ...readers].join(', ')],
    ['changes', 'take effect at the next start'],
  ]
  if (variable.secret) rows.push(['file', `${fileVariable(name)}=PATH, or the systemd credential ${name}`])
  return [name, ...rows.map(([what, text]) => `  ${what.padEnd(9)}${text}`)]
}

export const configCommand = (): Command =>
  new Command('config')
    .option('--json', 'as JSON')
    .action(({ json }: { readonly json?: true }) =>
      orSayWhy(async () => {
        const found = thisInstallation()
        readSettings(found.env)
        if (json) give(`${JSON.stringify(effective(found))}\n`)
        else show(configurationLines(found, terminal().columns ?? undefined))
      }),
    )
    .addCommand(
      new Command('explain')
        .description('what a variable means, its value, and who reads it')
        .argument('<key>', 'such as STROWGER_HTTPS_PORT or https-port')
        .option('--json', 'as JSON')
        .action((key: string, _options: object, self: Command) =>
          orSayWhy(async () => {
            try {
              const [name, ...rows] = explained(key, thisInstallation())
              const fields = () => Object.fromEntries(rows.map(row => [row.slice(2, 11).trim(), row.slice(11)]))
              // `config --json` and `config explain --json` are one option, which Commander gives to the first.
              if (self.optsWithGlobals().json) give(`${JSON.stringify({ name, ...fields() })}\n`)
              else tell(`${[name, ...rows].join('\n')}\n`)
            } catch (error) {
              throw error instanceof ConfigError ? new StartRefused(error.message) : error
            }
          }),
        ),
    )
