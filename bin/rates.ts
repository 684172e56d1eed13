import { createInterface } from 'node:readline/promises'
import { Command, Option } from 'commander'
import type { BookDifference } from '../control/operator/price-books.ts'
import { counted } from '../core/domain/text/counted.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { readText } from './files.ts'
import { print } from './operator-print.ts'
import { ask, askAll, askText, EndpointRefused } from './operator-route.ts'
import { complain, give, tell, terminal } from './terminal.ts'

interface Json {
  readonly json?: boolean
}

interface MarginOptions extends Json {
  readonly from: string
  readonly to: string
  readonly by: string
  readonly project?: string
}

interface ImportOptions extends Json {
  readonly name?: string
  readonly direction: 'outbound' | 'inbound'
  readonly project?: string
  readonly carrier?: string
  readonly from?: string
  readonly dryRun?: boolean
  readonly yes?: boolean
  readonly confirm?: boolean
}

/** The most leaps to print. The rest is only counted. */
const SHOWN = 20

/** Books of what customers pay, and of what carriers take. */
const PRICES = { path: 'price-books', param: 'price_book_id', name: 'price book', what: 'prices' } as const
const COSTS = { path: 'cost-books', param: 'cost_book_id', name: 'cost book', what: 'costs' } as const
type Books = typeof PRICES | typeof COSTS

export function costsCommand(): Command {
  const command = new Command('costs')
  bookCommands(command, COSTS)
  return command
}

function bookCommands(command: Command, books: Books): void {
  const { path, param, name } = books
  importCommand(command, books)
  command
    .command('list')
    .description(`every ${name}`)
    .option('--json', 'as JSON')
    .action(async (options: Json) => print(await askAll(`get /${path}`), options))
  command
    .command('export')
    .description(`print a ${name} as the CSV that an import takes`)
    .argument(`<${param}>`)
    .action(async (id: string) => {
      give(await askText(`get /${path}/{${param}}/export`, { params: { [param]: id } }))
    })
}

export function ratesCommand(): Command {
  const command = new Command('rates')
  bookCommands(command, PRICES)
  command
    .command('margins')
    .description('the revenue of settled calls, what their carriers charge, and the difference, in minor units')
    .requiredOption('--from <day>', 'first day, such as 2026-11-01')
    .requiredOption('--to <day>', 'last day')
    .addOption(new Option('--by <group>').choices(['day', 'carrier', 'project', 'destination', 'call']).default('day'))
    .option('--project <id>', 'of one project alone')
    .option('--json', 'as JSON')
    .action(async ({ from, to, by, project, ...options }: MarginOptions) => {
      const of = project === undefined ? {} : { project_id: project }
      const answer = await ask('get /margins', { query: { from, to, group_by: by, ...of } })
      print(options.json ? answer : answer.data, options)
    })
  return command
}

function importCommand(command: Command, { path, name: book_name, what }: Books): void {
  const importing = command
    .command('import')
    .description(
      `read a rate list (CSV: prefix,label,rate,unit,initial,additional; rates in minor units) into a new ` +
        `${book_name}, all or nothing; prints the changes against the ${what} in force, and asks on a terminal`,
    )
    .argument('<file>')
    .option('--name <name>', `of the ${book_name}; default: the name of the file`)
    .addOption(new Option('--direction <direction>').choices(['outbound', 'inbound']).default('outbound'))
  if (path === 'cost-books') importing.requiredOption('--carrier <id>', 'the carrier that takes them')
  else importing.option('--project <id>', 'for one project; default: for every project without its own')
  importing
    .option('--from <time>', 'in force from (ISO 8601); default: from now')
    .option('--dry-run', 'show what changes, and import nothing')
    .option('--yes', 'do not ask')
    .option('--confirm', 'accept prices that move tenfold or more, and prices in force that end')
    .option('--json', 'as JSON')
    .action(async (file: string, options: ImportOptions) => {
      const { direction, project, carrier, from, name = file, json = false } = options
      const list = {
        csv: readText(file),
        direction,
        ...(project === undefined ? {} : { project_id: project }),
        ...(carrier === undefined ? {} : { carrier_id: carrier }),
        ...(from === undefined ? {} : { effective_from: instant(from) }),
      }
      const difference = await ask(`post /${path}/diff`, { body: list }).catch(byLine(file))
      const { against } = difference
      // A project without a list pays the general one: the same prices as its own stay when the general ones change.
      const pins = against !== null && 'project_id' in against && against.project_id !== (project ?? null)
      if (!json) show(difference, what, pins)
      const nothing = difference.added + difference.changed + difference.ended === 0 && !pins
      if (options.dryRun === true || nothing) return json ? print(difference, options) : undefined
      if (options.yes !== true && !(await confirmed())) {
        tell('nothing was imported\n')
        return
      }
      const confirm = options.confirm === true
      const body = { ...list, name, confirm_leaps: confirm, confirm_ended: confirm }
      const book = await ask(`post /${path}/imports`, { body })
      if (json) print(book, options)
      else tell(`${book.id}: ${counted(book.rates, 'rate')}, in force from ${book.effective_from}\n`)
    })
}

function show({ against, added, changed, ended, lines, leaps }: BookDifference, what: string, pins: boolean): void {
  const base = against ? `${against.name} (${against.id}), in force since ${against.effective_from}` : `no ${what}`
  const more = leaps.length > SHOWN ? [`! and ${leaps.length - SHOWN} more`] : []
  const warnings = leaps.slice(0, SHOWN).map(leap => `! tenfold or more: ${leap}`)
  for (const line of [`against ${base}:`, ...lines, ...warnings, ...more]) tell(`${line}\n`)
  if (added + changed + ended > 0) return
  tell(pins ? 'no price changes; the project gets a list of its own\n' : 'nothing changes\n')
}

/** Prints each fault of the list with its line of the file. */
const byLine =
  (file: string) =>
  (error: unknown): never => {
    if (!(error instanceof EndpointRefused)) throw error
    const faults = error.errors.filter(({ pointer }) => pointer === '/csv')
    if (faults.length === 0) throw error
    for (const { message } of faults) complain(`${message.replace(/^line (\d+)/, `${file}:$1`)}\n`)
    throw new StartRefused(`${file} was not imported: correct the lines above`)
  }

/** Asks for confirmation on a terminal. A program's options are its confirmation. */
async function confirmed(): Promise<boolean> {
  if (!process.stdin.isTTY || terminal().columns === null) return true
  const lines = createInterface({ input: process.stdin, output: process.stdout })
  try {
    return /^y(es)?$/i.test((await lines.question('import? [y/N] ')).trim())
  } finally {
    lines.close()
  }
}

function instant(text: string): string {
  const ms = Date.parse(text)
  if (Number.isNaN(ms)) throw new StartRefused(`--from ${text}: expected a time such as 2026-12-01T00:00:00Z`)
  return new Date(ms).toISOString()
}
