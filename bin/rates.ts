import { createInterface } from 'node:readline/promises'
import { Command, Option } from 'commander'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { readText } from './files.ts'
import { print } from './operator-print.ts'
import { ask, askAll, askText, EndpointRefused } from './operator-route.ts'

interface Json {
  readonly json?: boolean
}

interface ImportOptions extends Json {
  readonly name?: string
  readonly direction: 'outbound' | 'inbound'
  readonly project?: string
  readonly from?: string
  readonly dryRun?: boolean
  readonly yes?: boolean
  readonly confirm?: boolean
}

interface Book {
  readonly id: string
  readonly name: string
  readonly effective_from: string
  readonly rates: number
}

interface Difference {
  readonly against: Book | null
  readonly added: number
  readonly changed: number
  readonly ended: number
  readonly lines: readonly string[]
  readonly leaps: readonly string[]
}

/** The most leaps to print. The rest is only counted. */
const SHOWN = 20

export function ratesCommand(): Command {
  const command = new Command('rates')
  importCommand(command)
  command
    .command('list')
    .description('every price book')
    .option('--json', 'as JSON')
    .action(async (options: Json) => print(await askAll('get /price-books'), options))
  command
    .command('export')
    .description('print a price book as the CSV that an import takes')
    .argument('<price_book_id>')
    .action(async (price_book_id: string) => {
      process.stdout.write(await askText('get /price-books/{price_book_id}/export', { params: { price_book_id } }))
    })
  command
    .command('margins')
    .description('what settled calls brought, what carriers take for them, and the difference, in minor units')
    .requiredOption('--from <day>', 'first day, such as 2026-11-01')
    .requiredOption('--to <day>', 'last day')
    .addOption(new Option('--by <group>').choices(['day', 'carrier', 'project', 'destination', 'call']).default('day'))
    .option('--json', 'as JSON')
    .action(async ({ from, to, by, ...options }: Json & { from: string; to: string; by: string }) => {
      const answer = (await ask('get /margins', { query: { from, to, group_by: by } })) as { data: object[] }
      print(options.json ? answer : answer.data, options)
    })
  return command
}

function importCommand(command: Command): void {
  command
    .command('import')
    .description(
      'read a rate list (CSV: prefix,label,rate,unit,initial,additional; rates in minor units) into a new price ' +
        'book, whole or not at all; shows first what changes against the prices in force, and on a terminal asks',
    )
    .argument('<file>')
    .option('--name <name>', 'of the price book; default: the name of the file')
    .addOption(new Option('--direction <direction>').choices(['outbound', 'inbound']).default('outbound'))
    .option('--project <id>', 'for one project; default: for every project without its own')
    .option('--from <time>', 'in force from (ISO 8601); default: from now')
    .option('--dry-run', 'show what changes, and import nothing')
    .option('--yes', 'do not ask')
    .option('--confirm', 'accept prices that move tenfold or more, and prices in force that end')
    .option('--json', 'as JSON')
    .action(async (file: string, options: ImportOptions) => {
      const { direction, project, from, name = file, json = false } = options
      const list = {
        csv: readText(file),
        direction,
        ...(project === undefined ? {} : { project_id: project }),
        ...(from === undefined ? {} : { effective_from: instant(from) }),
      }
      const difference = (await ask('post /price-books/diff', { body: list }).catch(byLine(file))) as Difference
      if (!json) show(difference)
      if (options.dryRun === true) return json ? print(difference, options) : undefined
      if (difference.added + difference.changed + difference.ended === 0) return
      if (options.yes !== true && !(await confirmed())) {
        process.stdout.write('nothing was imported\n')
        return
      }
      const confirm = options.confirm === true
      const body = { ...list, name, confirm_leaps: confirm, confirm_ended: confirm }
      const book = (await ask('post /price-books/imports', { body })) as Book
      if (json) print(book, options)
      else process.stdout.write(`${book.id}: ${book.rates} rates, in force from ${book.effective_from}\n`)
    })
}

function show({ against, added, changed, ended, lines, leaps }: Difference): void {
  const base = against ? `${against.name} (${against.id}), in force since ${against.effective_from}` : 'no prices'
  const more = leaps.length > SHOWN ? [`! and ${leaps.length - SHOWN} more`] : []
  const warnings = leaps.slice(0, SHOWN).map(leap => `! tenfold or more: ${leap}`)
  for (const line of [`against ${base}:`, ...lines, ...warnings, ...more]) process.stdout.write(`${line}\n`)
  if (added + changed + ended === 0) process.stdout.write('nothing changes\n')
}

/** Prints each fault of the list with its line of the file. */
const byLine =
  (file: string) =>
  (error: unknown): never => {
    if (!(error instanceof EndpointRefused)) throw error
    const faults = error.errors.filter(({ pointer }) => pointer === '/csv')
    if (faults.length === 0) throw error
    for (const { message } of faults) process.stderr.write(`${message.replace(/^line (\d+)/, `${file}:$1`)}\n`)
    throw new StartRefused(`${file} was not imported: correct the lines above`)
  }

/** Asks for confirmation on a terminal. A program's options are its confirmation. */
async function confirmed(): Promise<boolean> {
  if (!process.stdin.isTTY) return true
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    return /^y(es)?$/i.test((await terminal.question('import? [y/N] ')).trim())
  } finally {
    terminal.close()
  }
}

function instant(text: string): string {
  const ms = Date.parse(text)
  if (Number.isNaN(ms)) throw new StartRefused(`--from ${text}: expected a time such as 2026-12-01T00:00:00Z`)
  return new Date(ms).toISOString()
}
