import { Command, InvalidArgumentError, Option } from 'commander'
import { OPERATOR_SCOPES } from '../core/domain/access/scopes.ts'
import { counted } from '../core/domain/text/counted.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { readText } from './files.ts'
import { print } from './operator-print.ts'
import { ask, askAll, type ItemOf } from './operator-route.ts'
import { tell } from './terminal.ts'

// Commands for what /operator/v1 does. Each names an endpoint, so that both follow the same rules (decision 0643).

type Ceiling = number | 'none'

interface Json {
  readonly json?: boolean
}

const verb = (command: Command, name: string, description: string): Command =>
  command.command(name).description(description).option('--json', 'as JSON')

/** Parses a whole number or `none`. Commander would turn a null into an empty text. */
const ceiling = (text: string): Ceiling => (text === 'none' ? 'none' : whole(text))

/** The API's form of a ceiling. */
const nullIfNone = (value: Ceiling | undefined): number | null | undefined => (value === 'none' ? null : value)

function whole(text: string): number {
  if (!/^-?[0-9]{1,15}$/.test(text)) throw new InvalidArgumentError('expected a whole number')
  return Number(text)
}

/** Options that were given, under the names of the API's fields. */
const given = (fields: Readonly<Record<string, unknown>>): object =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

export function orgCommand(): Command {
  const command = new Command('org')
  verb(command, 'list', 'every organization').action(async (options: Json) =>
    print(await askAll('get /organizations'), options),
  )
  verb(command, 'create', 'create an organization with its first project, in the sandbox')
    .argument('<name>')
    .requiredOption('--email <address>', 'where the operator writes to the customer')
    .option('--time-zone <name>', 'of its days, such as Africa/Lagos', 'UTC')
    .option('--project <name>', 'name of its first project; default: its own')
    .action(async (name: string, options: Json & { email: string; timeZone: string; project?: string }) => {
      const { email: contact_email, timeZone: time_zone, project: project_name } = options
      print(
        await ask('post /organizations', { body: given({ name, contact_email, time_zone, project_name }) }),
        options,
      )
    })
  verb(command, 'show', 'one organization')
    .argument('<organization_id>')
    .action(async (organization_id: string, options: Json) =>
      print(await ask('get /organizations/{organization_id}', { params: { organization_id } }), options),
    )
  verb(command, 'set', 'change the name, the contact or the time zone')
    .argument('<organization_id>')
    .option('--name <name>')
    .option('--email <address>')
    .option('--time-zone <name>')
    .action(async (organization_id: string, options: Json & { name?: string; email?: string; timeZone?: string }) => {
      const body = given({ name: options.name, contact_email: options.email, time_zone: options.timeZone })
      print(await ask('patch /organizations/{organization_id}', { params: { organization_id }, body }), options)
    })
  for (const [name, description] of [
    ['suspend', 'its projects take no new calls and no changes'],
    ['resume', 'its projects work again'],
  ] as const)
    verb(command, name, description)
      .argument('<organization_id>')
      .requiredOption('--reason <text>', 'which the customer reads in the audit trail')
      .action(async (organization_id: string, options: Json & { reason: string }) => {
        const wish = { params: { organization_id }, body: { reason: options.reason } }
        print(await ask(`post /organizations/{organization_id}/${name}`, wish), options)
      })
  return command
}

interface CeilingOptions extends Json {
  readonly concurrency?: Ceiling
  readonly cps?: Ceiling
  readonly dailySpend?: Ceiling
  readonly velocity?: Ceiling
  readonly maxDuration?: Ceiling
  readonly maxRate?: Ceiling
}

interface ProjectOptions extends Json {
  readonly name?: string
  readonly payment?: string
  readonly credit?: number
  readonly openRisks?: string
}

export function projectCommand(): Command {
  const command = new Command('project')
  verb(command, 'list', 'every project')
    .option('--organization <id>', 'of one organization')
    .action(async (options: Json & { organization?: string }) => {
      const query = options.organization === undefined ? {} : { organization_id: options.organization }
      print(await askAll('get /projects', { query }), options)
    })
  verb(command, 'create', 'create a project, in the sandbox')
    .argument('<organization_id>')
    .argument('<name>')
    .addOption(new Option('--payment <how>').choices(['prepaid', 'postpaid']).default('prepaid'))
    .option('--credit <minor>', 'how far below zero a prepaid balance may go', whole)
    .action(async (organization_id: string, name: string, options: Json & { payment: string; credit?: number }) => {
      const { payment, credit: credit_limit_minor } = options
      print(
        await ask('post /projects', { body: given({ organization_id, name, payment, credit_limit_minor }) }),
        options,
      )
    })
  verb(command, 'show', 'one project')
    .argument('<project_id>')
    .action(async (project_id: string, options: Json) =>
      print(await ask('get /projects/{project_id}', { params: { project_id } }), options),
    )
  verb(command, 'set', 'change the name, how it pays, or its credit limit')
    .argument('<project_id>')
    .option('--name <name>')
    .addOption(new Option('--payment <how>').choices(['prepaid', 'postpaid']))
    .option('--credit <minor>', 'how far below zero a prepaid balance may go', whole)
    .option('--open-risks <names>', 'high-risk destinations that it may call, separated by commas; "none" closes all')
    .action(async (project_id: string, options: ProjectOptions) => {
      const { name, payment, credit: credit_limit_minor, openRisks } = options
      const open = openRisks === 'none' ? [] : openRisks?.split(',')
      const body = given({ name, payment, credit_limit_minor, risk: open && { open } })
      print(await ask('patch /projects/{project_id}', { params: { project_id }, body }), options)
    })
  ceilingsCommand(command)
  voiceAccountCommand(command)
  verb(command, 'checklist', 'what it needs before it can leave the sandbox')
    .argument('<project_id>')
    .action(async (project_id: string, options: Json) =>
      print(await ask('get /projects/{project_id}/checklist', { params: { project_id } }), options),
    )
  for (const [name, description] of [
    ['go-live', 'take it out of the sandbox: its calls reach carriers and cost money'],
    ['disable', 'it takes no new calls and no changes'],
    ['enable', 'it works again'],
  ] as const)
    verb(command, name, description)
      .argument('<project_id>')
      .requiredOption('--reason <text>', 'which the customer reads in the audit trail')
      .action(async (project_id: string, options: Json & { reason: string }) => {
        const wish = { params: { project_id }, body: { reason: options.reason } }
        print(await ask(`post /projects/{project_id}/${name}`, wish), options)
      })
  return command
}

function ceilingsCommand(command: Command): void {
  verb(command, 'ceilings', 'ceilings of the whole project; "none" takes one away, 0 admits nothing')
    .argument('<project_id>')
    .option('--concurrency <calls>', 'calls in progress', ceiling)
    .option('--cps <calls>', 'calls per second', ceiling)
    .option('--daily-spend <minor>', 'minor units a day', ceiling)
    .option('--velocity <minor>', 'minor units in a rolling hour', ceiling)
    .option('--max-duration <seconds>', 'of one call', ceiling)
    .option('--max-rate <minor>', 'minor units a minute', ceiling)
    .action(async (project_id: string, options: CeilingOptions) => {
      const params = { project_id }
      const { ceilings } = await ask('get /projects/{project_id}', { params })
      const changes = given({
        concurrency: nullIfNone(options.concurrency),
        cps: nullIfNone(options.cps),
        daily_spend_cap_minor: nullIfNone(options.dailySpend),
        velocity_cap_minor: nullIfNone(options.velocity),
        max_call_duration_seconds: nullIfNone(options.maxDuration),
        max_destination_rate_minor: nullIfNone(options.maxRate),
      })
      const body = { ...ceilings, ...changes }
      print(await ask('put /projects/{project_id}/ceilings', { params, body }), options)
    })
}

function voiceAccountCommand(command: Command): void {
  verb(command, 'voice-account', 'show the voice account of a project, or change what is given')
    .argument('<project_id>')
    .addOption(new Option('--api <paths>', 'of the voice-calls API').choices(['spec', 'extended']))
    .addOption(new Option('--status <status>').choices(['active', 'revoked']))
    .addOption(new Option('--event-history <kept>', 'HTTP exchanges of calls').choices(['enabled', 'disabled']))
    .action(async (project_id: string, options: Json & { api?: string; status?: string; eventHistory?: string }) => {
      const { api: voice_api, status, eventHistory: call_event_history } = options
      const body = given({ voice_api, status, call_event_history })
      const params = { project_id }
      const change = Object.keys(body).length > 0
      const path = '/projects/{project_id}/voice-account' as const
      print(await (change ? ask(`patch ${path}`, { params, body }) : ask(`get ${path}`, { params })), options)
    })
}

export function balanceCommand(): Command {
  const command = new Command('balance')
  verb(command, 'show', 'balance, held money and credit')
    .argument('<project_id>')
    .action(async (project_id: string, options: Json) =>
      print(await ask('get /projects/{project_id}/balance', { params: { project_id } }), options),
    )
  verb(command, 'ledger', 'what was put on the account and taken off it, newest first')
    .argument('<project_id>')
    .action(async (project_id: string, options: Json) =>
      print(await askAll('get /projects/{project_id}/ledger', { params: { project_id } }), options),
    )
  for (const [name, path, description] of [
    ['top-up', 'top-ups', 'put money on the account'],
    ['correct', 'corrections', 'correct the balance by an amount, which may be negative'],
  ] as const)
    verb(command, name, description)
      .argument('<project_id>')
      .argument('<minor>', 'minor units', whole)
      .requiredOption('--reason <text>')
      .option('--reference <text>', 'of the payment, such as a bank’s')
      .action(
        async (project_id: string, amount_minor: number, options: Json & { reason: string; reference?: string }) => {
          const { reason, reference } = options
          const wish = { params: { project_id }, body: given({ amount_minor, reason, reference }) }
          print(await ask(`post /projects/{project_id}/${path}`, wish), options)
        },
      )
  return command
}

/** Finds the id of a number by its digits. */
async function numberId(e164: string): Promise<string> {
  const [found] = await askAll('get /numbers', { query: { prefix: e164 } })
  if (found?.e164.replace('+', '') !== e164.replace('+', '')) throw new StartRefused(`there is no number ${e164}`)
  return found.id
}

function importNumbers(command: Command): void {
  verb(command, 'import', 'read a list (CSV: number,monthly,offered_to) as a preview; with --yes the platform takes it')
    .argument('<file>')
    .option('--name <name>', 'of the import; default: the name of the file')
    .option('--yes', 'confirm the preview at once')
    .action(async (file: string, options: Json & { name?: string; yes?: boolean }) => {
      const body = { name: options.name ?? file.replace(/^.*\//, ''), csv: readText(file) }
      const preview = await ask('post /number-imports', { body })
      const confirm = () => ask('post /number-imports/{import_id}/confirm', { params: { import_id: preview.id } })
      const shown = options.yes === true ? await confirm() : preview
      if (options.json) print(shown, options)
      else tell(`${importLine(shown)}\n`)
    })
  verb(command, 'imports', 'imports of numbers and their progress, newest first').action(async (options: Json) => {
    const all = await askAll('get /number-imports')
    if (options.json) print(all, options)
    else for (const each of all) tell(`${importLine(each)}\n`)
  })
  verb(command, 'confirm', 'let the platform take a previewed list into the inventory')
    .argument('<import_id>')
    .action(async (import_id: string, options: Json) =>
      print(await ask('post /number-imports/{import_id}/confirm', { params: { import_id } }), options),
    )
  verb(command, 'drop', 'drop a previewed list')
    .argument('<import_id>')
    .action(async (import_id: string, options: Json) =>
      print(await ask('delete /number-imports/{import_id}', { params: { import_id } }), options),
    )
}

const importLine = ({ id, state, total, known, done, added }: ItemOf<'get /number-imports'>): string =>
  state === 'preview'
    ? `${id}  preview: ${counted(total, 'number')}, ${known} of them known; confirm it with: strowger numbers confirm ${id}`
    : `${id}  ${state}: ${done} of ${counted(total, 'number')}, ${added} new`

export function numbersCommand(): Command {
  const command = new Command('numbers')
  verb(command, 'list', 'numbers of the inventory and of all projects')
    .option('--project <id>', 'of one project')
    .addOption(new Option('--status <status>').choices(['available', 'held', 'quarantined']))
    .action(async (options: Json & { project?: string; status?: string }) => {
      const query = given({ project_id: options.project, status: options.status }) as Record<string, string>
      print(await askAll('get /numbers', { query }), options)
    })
  verb(command, 'add', 'add a number, or a range up to a last one, to the inventory')
    .argument('<first>')
    .argument('[last]')
    .option('--monthly <minor>', 'what a project pays for a month of each, in minor units', whole)
    .action(async (first: string, last: string | undefined, options: Json & { monthly?: number }) =>
      print(await ask('post /numbers', { body: given({ first, last, monthly_minor: options.monthly }) }), options),
    )
  verb(command, 'offer', 'say who may order numbers of the inventory, and their price')
    .argument('<first>')
    .argument('[last]')
    .requiredOption('--to <whom>', 'all, nobody, or the id of a project')
    .option('--monthly <minor>', 'what a project pays for a month of each, in minor units', whole)
    .action(async (first: string, last: string | undefined, options: Json & { to: string; monthly?: number }) => {
      const { to, monthly: monthly_minor } = options
      const everybody = to === 'all' || to === 'nobody'
      const whom = everybody ? { offered_to: to } : { offered_to: 'project', offered_project_id: to }
      print(await ask('post /number-offers', { body: given({ first, last, ...whom, monthly_minor }) }), options)
    })
  verb(command, 'offers', 'the inventory by price and by who may order').action(async (options: Json) => {
    const { data } = await ask('get /number-offers')
    print(data, options)
  })
  importNumbers(command)
  verb(command, 'assign', 'give a number of the inventory to a project')
    .argument('<number>')
    .argument('<project_id>')
    .option('--monthly <minor>', 'what the project pays for a month, in minor units', whole)
    .action(async (number: string, project_id: string, options: Json & { monthly?: number }) => {
      const params = { number_id: await numberId(number) }
      const body = given({ project_id, monthly_minor: options.monthly })
      print(await ask('post /numbers/{number_id}/assign', { params, body }), options)
    })
  verb(command, 'take-back', 'take a number from its project; it is quarantined for 30 days')
    .argument('<number>')
    .requiredOption('--reason <text>', 'which the customer reads in the audit trail')
    .action(async (number: string, options: Json & { reason: string }) => {
      const params = { number_id: await numberId(number) }
      print(await ask('post /numbers/{number_id}/take-back', { params, body: { reason: options.reason } }), options)
    })
  return command
}

export function operatorCommand(): Command {
  const command = new Command('operator')
  const key = command.command('key').description('create, list and revoke keys')
  verb(key, 'create', 'create a key; it is shown once')
    .argument('<name>')
    .addOption(new Option('--scopes <list>', 'separated by commas').default(OPERATOR_SCOPES.join(','), 'all'))
    .option('--expires <time>', 'ISO 8601; default: never')
    .action(async (name: string, options: Json & { scopes: string; expires?: string }) => {
      const body = given({ name, scopes: options.scopes.split(','), expires_at: options.expires })
      print(await ask('post /keys', { body }), options)
    })
  verb(key, 'list', 'every key, newest first').action(async (options: Json) => {
    const { data } = await ask('get /keys')
    print(data, options)
  })
  verb(key, 'revoke', 'revoke a key at once')
    .argument('<key_id>')
    .action(async (key_id: string, options: Json) =>
      print(await ask('delete /keys/{key_id}', { params: { key_id } }), options),
    )
  return command
}
