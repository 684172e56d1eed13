import { Command, InvalidArgumentError, Option } from 'commander'
import type { PresentedCarrier } from '../control/operator/carrier-fields.ts'
import { redirectsText, tlsText } from '../core/domain/carriers/plan.ts'
import { counted } from '../core/domain/text/counted.ts'
import { oneLine } from '../core/domain/text/visible.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { readCarriersFile } from './carriers-file.ts'
import { print } from './operator-print.ts'
import { type AnswerOf, ask } from './operator-route.ts'
import { fail, tell, terminal } from './terminal.ts'

interface Json {
  readonly json?: boolean
}

interface TlsOptions extends Json {
  readonly tlsVerification: 'required' | 'pinned' | 'off'
  readonly tlsFingerprint?: string
}

interface AddOptions extends TlsOptions {
  readonly source: string[]
  readonly target: string[]
  readonly transport: 'udp' | 'tcp' | 'tls'
  readonly route: { prefix: string; priority: number; cost_minor: number }[]
  readonly codecs: string[]
  readonly redirects: 'off' | 'same_host' | 'listed'
  readonly confirm?: boolean
}

interface RegisterOptions extends TlsOptions {
  readonly registrar: string
  readonly username: string
  readonly contactUser?: string
  readonly expires: number
  readonly transport: 'udp' | 'tcp' | 'tls'
}

const gather =
  <T>(read: (text: string) => T) =>
  (text: string, before: T[]): T[] => [...before, read(text)]

const asIs = (text: string): string => text

/** Parses `PREFIX[:PRIORITY[:COST]]`. The prefix `any` matches every number. */
const route = (text: string) => {
  const match = /^(any|\+?\d{1,15})(?::(\d{1,6}))?(?::(\d{1,9}))?$/.exec(text)
  if (!match) throw new InvalidArgumentError('expected PREFIX[:PRIORITY[:COST_MINOR]], PREFIX may be `any`')
  const [, prefix = '', priority = '10', cost = '0'] = match
  return { prefix, priority: Number(priority), cost_minor: Number(cost) }
}

/** Adds the options for the verification of a peer's certificate. */
const withTls = (command: Command): Command =>
  command
    .addOption(
      new Option('--tls-verification <how>', 'of its certificate; required: by chain and name')
        .choices(['required', 'pinned', 'off'])
        .default('required'),
    )
    .option('--tls-fingerprint <sha256>', 'of the certificate that is pinned')

const tlsOf = ({ tlsVerification: tls_verification, tlsFingerprint }: TlsOptions) => ({
  tls_verification,
  ...(tlsFingerprint === undefined ? {} : { tls_fingerprint: tlsFingerprint }),
})

const lifetime = (text: string): number => {
  const seconds = Number(text)
  if (!/^\d{1,5}$/.test(text) || seconds < 60 || seconds > 86_400)
    throw new InvalidArgumentError('expected seconds from 60 to 86400')
  return seconds
}

const codecList = (text: string): string[] => text.toUpperCase().split(',')

export function carriersCommand(): Command {
  const command = new Command('carriers')
  command
    .command('list')
    .description('every carrier with its sources, targets and routes')
    .option('--json', 'as JSON')
    .action(async (options: Json) => {
      const { data } = await ask('get /carriers')
      if (options.json) print(data, options)
      else for (const carrier of data) tell(`${describe(carrier)}\n`)
    })
  addCommand(command)
  applyCommand(command)
  registerCommand(command)
  credentialsCommand(command)
  flowCommands(command)
  metricsCommand(command)
  testCommand(command)
  for (const [name, description, endpoint] of [
    ['unregister', 'end the registration with a carrier', 'delete /carriers/{carrier_id}/registration'],
    [
      'no-credentials',
      "remove what answers a carrier's challenges; a registration keeps its own",
      'delete /carriers/{carrier_id}/credentials',
    ],
    ['remove', 'remove a carrier; its running calls continue', 'delete /carriers/{carrier_id}'],
  ] as const)
    command
      .command(name)
      .description(description)
      .argument('<id>')
      .option('--json', 'as JSON')
      .action(async (carrier_id: string, options: Json) => {
        shown(await ask(endpoint, { params: { carrier_id } }), options)
      })
  return command
}

function flowCommands(command: Command): void {
  for (const [name, before, description] of [
    ['drain', 'disable', 'a carrier gets and brings no new calls; running ones continue'],
    ['resume', 'enable', 'a drained carrier gets and brings calls again'],
  ] as const)
    command
      .command(name)
      .alias(before)
      .description(description)
      .argument('<id>')
      .option('--reason <text>', 'for the audit trail')
      .option('--json', 'as JSON')
      .action(async (carrier_id: string, { reason, ...options }: Json & { readonly reason?: string }) => {
        const body = reason === undefined ? {} : { reason }
        shown(await ask(`post /carriers/{carrier_id}/${name}`, { params: { carrier_id }, body }), options)
      })
}

function metricsCommand(command: Command): void {
  command
    .command('metrics')
    .description('attempts, ASR, ACD, PDD, cost, margin and media of the calls of a carrier, by day')
    .argument('<id>')
    .requiredOption('--from <day>', 'first day, such as 2026-11-01')
    .requiredOption('--to <day>', 'last day')
    .option('--json', 'as JSON')
    .action(async (carrier_id: string, { from, to, ...options }: Json & { from: string; to: string }) => {
      const wish = { params: { carrier_id }, query: { from, to } }
      const answer = await ask('get /carriers/{carrier_id}/metrics', wish)
      if (options.json) return print(answer, options)
      for (const figures of answer.days) tell(`${figuresLine(figures.day, figures)}\n`)
      tell(`${figuresLine('total', answer.total)}\n`)
    })
}

type Figures = AnswerOf<'get /carriers/{carrier_id}/metrics'>['total']

const figuresLine = (name: string, figures: Figures): string =>
  [
    name.padEnd(10),
    `${figures.answered} of ${figures.attempts} answered`,
    `ASR ${figures.asr_pct ?? '-'} %`,
    `ACD ${figures.acd_seconds ?? '-'} s`,
    `PDD ${figures.pdd_ms ?? '-'} ms`,
    `cost ${figures.cost_minor ?? '-'}`,
    `margin ${figures.margin_minor ?? '-'}`,
    ...mediaWords(figures),
  ].join('  ')

const mediaWords = ({ media }: Figures): string[] =>
  media
    ? [
        `packets ${media.packets_received} in, ${media.packets_lost} lost, ${media.packets_sent} out`,
        `jitter ${media.jitter_ms ?? '-'} ms`,
        `MOS ${media.mos ?? '-'}`,
      ]
    : []

const POLL_MS = 300
/** The platform ends a test after two minutes. */
const TEST_LIMIT_MS = 125_000

function testCommand(command: Command): void {
  command
    .command('test')
    .description(
      'test the registration, names, certificates and answers of a carrier with the running platform; places no call',
    )
    .argument('<id>')
    .option('--json', 'as JSON')
    .action(async (carrier_id: string, options: Json) => {
      const { id: run_id } = await ask('post /carriers/{carrier_id}/test', { params: { carrier_id } })
      const read = 'get /carriers/{carrier_id}/tests/{run_id}'
      for (const deadline = Date.now() + TEST_LIMIT_MS; ; ) {
        const run = await ask(read, { params: { carrier_id, run_id } })
        if (run.result !== 'running') return printTest(run, options)
        if (Date.now() > deadline) throw new StartRefused('no signaling node took the test: is the platform running?')
        await new Promise(resolve => setTimeout(resolve, POLL_MS))
      }
    })
}

function printTest(run: AnswerOf<'get /carriers/{carrier_id}/tests/{run_id}'>, options: Json): void {
  if (run.result === 'failed') fail()
  if (options.json) {
    print(run, options)
    return
  }
  for (const { state, summary } of run.checks) tell(`${state.padEnd(7)} ${oneLine(summary ?? '')}\n`)
  tell(`${run.result}: ${oneLine(run.finding ?? '')}\n`)
}

function addCommand(command: Command): void {
  withTls(command.command('add'))
    .description('add a carrier')
    .argument('<name>')
    .option('--source <cidr>', 'network from which its INVITEs come; repeatable', gather(asIs), [])
    .option('--target <uri>', 'where to send calls, sip:HOST[:PORT]; repeatable, in order', gather(asIs), [])
    .addOption(new Option('--transport <name>', 'of the targets').choices(['udp', 'tcp', 'tls']).default('udp'))
    .option('--route <prefix>', 'PREFIX[:PRIORITY[:COST_MINOR]]; repeatable', gather(route), [])
    .option('--codecs <list>', 'in order of preference', codecList, ['PCMU', 'PCMA'])
    .addOption(redirectsOption())
    .option('--confirm', 'accept sources wider than /8 (IPv6: /16)')
    .option('--json', 'as JSON')
    .action(async (name: string, options: AddOptions) => {
      const { source: sources, route: routes, codecs, redirects, transport } = options
      const targets = options.target.map(sip_uri => ({ sip_uri, transport, ...tlsOf(options) }))
      const confirmed = options.confirm ? { confirm_wide_sources: true } : {}
      const body = { name, codecs, redirects, sources, targets, routes, ...confirmed }
      const added = await ask('post /carriers', { body })
      if (options.json) print(added, options)
      else tell(`${added.id}\n`)
    })
}

function applyCommand(command: Command): void {
  command
    .command('apply')
    .description('apply a file (JSON) to the carriers, all or nothing; prints the changes, and makes them with --yes')
    .argument('<file>')
    .option('--yes', 'do it')
    .option('--prune', 'remove carriers that the file does not name')
    .option('--confirm', 'accept sources wider than /8 (IPv6: /16)')
    .option('--json', 'as JSON')
    .action(async (file: string, options: Json & { yes?: boolean; prune?: boolean; confirm?: boolean }) => {
      const { yes = false, prune = false } = options
      const confirmed = options.confirm ? { confirm_wide_sources: true } : {}
      const body = { ...readCarriersFile(file), ...confirmed, prune, dry_run: !yes }
      const answer = await ask('post /carriers/apply', { body })
      if (options.json) return print(answer, options)
      for (const line of answer.steps) tell(`${line}\n`)
      if (answer.steps.length === 0) tell('nothing changes\n')
      else if (!yes) tell('nothing was changed yet; --yes does it\n')
    })
}

const redirectsOption = (): Option =>
  new Option('--redirects <where>', 'where its 3xx may send a call: nowhere, to the called host, to any of its targets')
    .choices(['off', 'same_host', 'listed'])
    .default('off')

/** @throws StartRefused */
async function passwordFromInput(): Promise<string> {
  const password = (await terminal().input()).replace(/\r?\n$/, '')
  if (password === '') throw new StartRefused('expected the password on standard input')
  return password
}

const PASSWORD_HELP = '\nThe password is read from standard input, so that no process list shows it.'

function credentialsCommand(command: Command): void {
  command
    .command('credentials')
    .description("set what answers a carrier's challenges to our calls")
    .argument('<id>')
    .requiredOption('--username <name>', 'user of the digest')
    .option('--json', 'as JSON')
    .addHelpText('after', PASSWORD_HELP)
    .action(async (carrier_id: string, options: Json & { readonly username: string }) => {
      const body = { username: options.username, password: await passwordFromInput() }
      shown(await ask('put /carriers/{carrier_id}/credentials', { params: { carrier_id }, body }), options)
    })
}

function registerCommand(command: Command): void {
  withTls(command.command('register'))
    .description('register with a carrier, and keep the registration up')
    .argument('<id>')
    .requiredOption('--registrar <uri>', 'sip:HOST[:PORT], also the domain of the address')
    .requiredOption('--username <name>', 'user of the address and of the digest')
    .option('--contact-user <name>', 'user part of our contact; default: the user name')
    .option('--expires <seconds>', 'how long a registration lasts, 60 to 86400', lifetime, 3600)
    .addOption(new Option('--transport <name>').choices(['udp', 'tcp', 'tls']).default('udp'))
    .option('--json', 'as JSON')
    .addHelpText('after', PASSWORD_HELP)
    .action(async (carrier_id: string, options: RegisterOptions) => {
      const password = await passwordFromInput()
      const { registrar, username, contactUser, expires: expires_seconds, transport } = options
      const contact = contactUser === undefined ? {} : { contact_user: contactUser }
      const body = { registrar, username, password, ...contact, expires_seconds, transport, ...tlsOf(options) }
      shown(await ask('put /carriers/{carrier_id}/registration', { params: { carrier_id }, body }), options)
    })
}

/** Prints a changed carrier; nothing for one that was removed. */
function shown(answer: unknown, options: Json): void {
  if (options.json) print(answer, options)
  else if (answer !== undefined) tell(`${describe(answer as PresentedCarrier)}\n`)
}

const stateText = ({ state, live_calls }: PresentedCarrier): string => {
  if (state === 'active') return ''
  return state === 'drained' ? ' (drained)' : ` (draining, ${counted(live_calls, 'call')} left)`
}

const describe = (carrier: PresentedCarrier): string =>
  [
    `${carrier.id}  ${carrier.name}${stateText(carrier)}  ${carrier.codecs.join(',')}${redirectsText(carrier)}`,
    ...carrier.sources.map(cidr => `  from   ${cidr}`),
    ...carrier.targets.map(
      target => `  to     ${target.sip_uri} ${target.transport} priority ${target.priority}${tlsText(target)}`,
    ),
    ...carrier.routes.map(row => `  route  ${row.prefix} priority ${row.priority} cost ${row.cost_minor}`),
    ...(carrier.digest_username === null ? [] : [`  digest ${carrier.digest_username}`]),
    ...(carrier.registration ? [describeRegistration(carrier.registration)] : []),
  ].join('\n')

function describeRegistration(registration: NonNullable<PresentedCarrier['registration']>): string {
  const { registrar, username, state, expires_at, detail, next_try_at } = registration
  const what = `  register ${username} at ${registrar}${tlsText(registration)}: `
  if (state === 'untried') return `${what}not tried yet`
  if (state === 'registered') return `${what}registered until ${expires_at}`
  const why = detail === null ? '' : ` (${detail})`
  const next = next_try_at === null ? '' : `, next try ${next_try_at}`
  return `${what}${state}${why}${next}`
}
