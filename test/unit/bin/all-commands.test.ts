import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import type { Command } from 'commander'
import { TREE } from '../../../core/runtime/tree.ts'
import { DATABASE_FILE, openState, type State } from '../../../core/state/index.ts'
import { putMachine } from '../../../core/state/nodes/machines.ts'
import { registerNode } from '../../../core/state/nodes/nodes.ts'
import { INSTALLATION } from '../../../core/state/people/audit.ts'
import { insertTestAlert, insertTestContainment } from '../../support/alerts.ts'
import { allCommands, helpOf, runCommand } from '../../support/command-line.ts'
import { controlPlane } from '../../support/control-plane.ts'
import { ranCall, trunkOf } from '../../support/ended-calls.ts'
import t from '../../support/harness/index.ts'

// Every command of the registry, run in this process at the widths that terminals have. What each prints is compared
// with fixtures/cli; ids, times and secrets in it are masked. A change is accepted by copying the file that
// test-results/cli has then.

const WIDTHS = [40, 80, 200] as const
const SNAPSHOTS = join(TREE, 'test-results/cli')
const ACCEPTED = join(TREE, 'fixtures/cli')
/** They run until a person ends them. `up` starts processes. */
const LASTING = new Set(['up', 'agent try', 'script run', 'cluster token'])
/** What they print depends on this machine. */
const OF_THIS_MACHINE = new Set(['doctor', 'status', 'install', 'uninstall'])
/** They print a format of their own, or talk. */
const WITHOUT_JSON = new Set([...LASTING, 'export', 'rates export', 'costs export', 'completion'])
/** Their format is for programs, so no screen limits its lines. */
const FOR_PROGRAMS = new Set(['export', 'rates export', 'costs export', 'completion', 'bootstrap'])
/** It lists the options of all other commands. */
const OF_ALL = new Set(['completion'])
const RATES = 'fixtures/rates/standard.csv'
const MASTER_KEY = '07'.repeat(32)

/** A machine that has been silent for long, whenever the test runs. */
const MACHINE = {
  id: 'mac_0123456789abcdef',
  host: '203.0.113.7',
  sip_port: 5060,
  takes_calls: 1,
  roles: 'edge signaling media control',
  hosts: '',
  version: '0.1.0',
  contracts: '0.1.0',
} as const

/** Values for the arguments and mandatory options of commands, by their names, or by the command and their names. */
type Things = Readonly<Record<string, string>>

/** A state in which something of each kind is, the words for it, and a folder for copies. */
async function prepared(t: Parameters<typeof controlPlane>[0]) {
  const w = await controlPlane(t)
  // A folder whose name has the same length on every machine, because its name is printed.
  const folder = mkdtempSync('/tmp/strowger-command-line-')
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const env = { STROWGER_DATA: w.settings.data_dir, STROWGER_MASTER_KEY: MASTER_KEY }
  const made = async (...words: string[]): Promise<string> => {
    const { code, stdout, stderr } = await runCommand([...words, '--json'], { env, state: w.state })
    if (code !== 0) throw new Error(stderr)
    return JSON.parse(stdout).id
  }
  const silent_ms = Date.parse('2026-11-01T00:00:00Z')
  await putMachine(w.state.db, { ...MACHINE, base_url: `http://${MACHINE.host}:8080`, settings: '{}' }, silent_ms)
  const process_of = { machine_id: MACHINE.id, boot_id: 'boot_1', pid: 1 }
  await registerNode(w.state.db, { id: 'node_0123456789ab', kind: 'signaling', ...process_of }, silent_ms)
  const trunk_id = await trunkOf(w, 'Head office Lagos')
  await insertTestAlert(w)
  const containment_id = await insertTestContainment(w)
  const call = { trunk_id, number_id: null }
  await ranCall(w, { seconds: null, cause: 'refused', sip_code: 486, call })
  const sid = await ranCall(w, { seconds: 62, pdd_ms: 840, call })
  const carriers = join(folder, 'carriers.json')
  const targets = [{ sip_uri: 'sip:198.51.100.7' }]
  writeFileSync(carriers, JSON.stringify({ carriers: [{ name: 'Ibadan Link', sources: [], targets, routes: [] }] }))
  const route = ['--source', '203.0.113.0/24', '--target', 'sip:198.51.100.1', '--route', '234:5:120']
  const carrier = await made('carriers', 'add', 'Lagos Telecom', ...route)
  const { project_id } = w.demo
  const { organization_id } = await w.state.db
    .selectFrom('project')
    .select('organization_id')
    .where('id', '=', project_id)
    .executeTakeFirstOrThrow()
  const { email } = await w.state.db.selectFrom('member').select('email').executeTakeFirstOrThrow()
  await made('operator', 'key', 'create', 'Desk')
  const { id: key_id } = await w.state.db.selectFrom('operator_key').select('id').executeTakeFirstOrThrow()
  const things: Things = {
    ...{ project_id, organization_id, trunk_id, containment_id, email, sid, call_sid: sid, call: sid },
    ...{ number: w.demo.numbers[0] ?? '', trunk: 'Head office Lagos', prefix: '+88213', code: '112', level: 'project' },
    ...{ first: '+2342015550000', minor: '5000', name: 'Ibadan Link', key: 'https-port', decision: 'approve' },
    ...{ to: '+2348030000002', file: RATES, document: RATES, import_id: 'imp_none', source_id: 'src_none' },
    'carriers id': carrier,
    machine_id: MACHINE.id,
    ...{ 'host:port': '127.0.0.1:9', token: 'none' },
    // It would wait for a signaling node.
    'carriers test id': 'car_none',
    'limits id': project_id,
    key_id,
    price_book_id: await made('rates', 'import', RATES),
    cost_book_id: await made('costs', 'import', RATES, '--carrier', carrier),
    'backup file': '/nowhere/strowger.tar.gz',
    'carriers file': carriers,
    '--email': 'desk@lagos.example',
    '--reason': 'a test',
    '--to': '2026-11-30',
    'numbers --to': 'all',
    '--from': '2026-11-01',
    '--registrar': 'sip:203.0.113.5',
    '--username': 'lagos',
    '--carrier': carrier,
  }
  const database = join(folder, 'database')
  await w.state.maintenance.copyTo(database)
  return { folder, database, things }
}

/** The words of a command with its arguments and mandatory options. */
function filled(words: readonly string[], command: Command, things: Things): string[] {
  const thing = (name: string): string => {
    const found = things[`${words.join(' ')} ${name}`] ?? things[`${words[0]} ${name}`] ?? things[name]
    if (found === undefined) throw new Error(`no value for ${name} of ${words.join(' ')}: add it to "things"`)
    return found
  }
  return [
    ...words,
    ...command.registeredArguments.filter(({ required }) => required).map(argument => thing(argument.name())),
    ...command.options
      .filter(({ mandatory, defaultValue }) => mandatory && defaultValue === undefined)
      .flatMap(({ long }) => [long ?? '', thing(long ?? '')]),
    ...(command.options.some(({ long }) => long === '--once') ? ['--once'] : []),
    // The thread that writes an export yields to all other work: a loaded machine would wait for it.
    ...(words[0] === 'export' ? ['--since', 'yesterday'] : []),
  ]
}

/** Replaces ids, times and secrets by texts of the same length. */
const masked = (text: string): string =>
  text
    .replace(/\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?Z?)?)?/g, time => time.replace(/\d/g, '0'))
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{3}[0-9a-f-]*/g, id => id.replace(/[0-9a-f]/g, 'x'))
    .replace(/\b([a-z]{2,4})_([0-9a-f]{8}[0-9a-f-]*)/g, (_, kind, id) => `${kind}_${'x'.repeat(id.length)}`)
    .replace(/\b\d\d:\d\d:\d\d\b/g, '00:00:00')
    .replace(/\b([A-Z]{2})([0-9a-f]{4,})/g, (_, kind, id) => `${kind}${'x'.repeat(id.length)}`)
    // Letters and digits by chance: now and then a secret has no digit. An id that is masked stays as it is.
    .replace(/(?<![\w-])(?![A-Z]{2}x+(?![\w-]))[\w-]{30,}/g, secret =>
      /\d|[a-z].*[A-Z]|[A-Z].*[a-z]/.test(secret) ? 'x'.repeat(secret.length) : secret,
    )
    .replace(/\bok_live_\w+|(?<="password": ")[^"]+/g, secret => 'x'.repeat(secret.length))
    // Calls of the last second and minute: this machine may take longer.
    .replace(/(cps|last minute) \d+/g, '$1 0')
    .replace(/(SEC-TEST-|\+8821)\d{1,3}/g, (found, kind) => kind + 'x'.repeat(found.length - kind.length))
    .replace(/\b[0-9a-f]{16,}/g, hash => 'x'.repeat(hash.length))
    .replace(/(strowger-command-line-)\w{6}\/(\d{4})?/g, '$1xxxxxx/')

const acceptedText = (file: string): string => {
  const path = join(ACCEPTED, file)
  return existsSync(path) ? readFileSync(path, 'utf8') : ''
}

/** The first lines that differ, as `line: accepted → printed`. */
function changes(accepted: string, printed: string): string[] {
  const [before, after] = [accepted.split('\n'), printed.split('\n')]
  const lines = Array.from({ length: Math.max(before.length, after.length) }, (_, index) => index)
  return lines
    .filter(index => before[index] !== after[index])
    .slice(0, 5)
    .map(index => `${index + 1}: ${before[index] ?? '(no line)'} → ${after[index] ?? '(no line)'}`)
}

/** Returns the lines that are longer than the screen. One word, such as an address to be copied, may be. */
const tooLong = (text: string, width: number): string[] =>
  text.split('\n').filter(line => line.length > width && line.trim().includes(' '))

interface Told {
  readonly organization_id: string
  readonly actor_type: string
  readonly actor_name: string
}

/** Runs commands on copies of a database: one that changed is not used again. */
function copies(folder: string, database: string) {
  let count = 0
  let open: { readonly state: State; readonly data_dir: string; readonly watch: Database.Database } | null = null
  const close = async () => {
    await open?.state.close()
    open?.watch.close()
    open = null
  }
  const run = async (words: readonly string[], columns: number | null) => {
    if (open === null) {
      const data_dir = join(folder, String(++count).padStart(4, '0'))
      mkdirSync(data_dir)
      const file = join(data_dir, DATABASE_FILE)
      copyFileSync(database, file)
      open = { data_dir, state: await openState({ data_dir, here: true }), watch: new Database(file) }
    }
    const { state, data_dir, watch } = open
    /** SQLite changes it with every commit of another connection. */
    const version = () => watch.pragma('data_version', { simple: true })
    const before = version()
    const trail = () => watch.prepare('select * from audit_event order by position').all() as Told[]
    const told_before = trail().length
    const env = { STROWGER_DATA: data_dir, STROWGER_MASTER_KEY: MASTER_KEY }
    const ended = await runCommand(words, { env, state, columns, input: 'secret' })
    const changed = version() !== before
    const told = trail().slice(told_before)
    if (changed) await close()
    return { ...ended, changed, told }
  }
  return { run, close }
}

t.test('every command prints what fits 40, 80 and 200 columns, and JSON', async t => {
  const { folder, database, things } = await prepared(t)
  const { run, close } = copies(folder, database)
  const printed = new Map<string, string[]>()
  for (const { words, command } of await allCommands()) {
    const name = words.join(' ')
    for (const width of WIDTHS) {
      const help = await helpOf(command, width)
      t.match(help, /^Usage: /)
      t.same(tooLong(help, width), [], `${name} --help`)
    }
    const has_json = command.options.some(({ long }) => long === '--json')
    t.equal(has_json, !WITHOUT_JSON.has(name), `${name} has --json`)
    if (LASTING.has(name)) continue
    const whole = filled(words, command, things)
    const sections = new Map<string, number[]>()
    for (const width of WIDTHS) {
      const { code, stdout, stderr, changed, told } = await run(whole, width)
      if (changed) {
        t.ok(told.length > 0, `${name} changes the state, and the audit trail says so`)
        for (const { organization_id, actor_type, actor_name } of told)
          t.same(
            [actor_type, actor_name],
            ['operator', organization_id === INSTALLATION ? 'operator' : 'Operator'],
            `${name}: by the user who ran it, whom no customer’s trail names`,
          )
      }
      t.same(tooLong(FOR_PROGRAMS.has(name) ? stderr : stdout + stderr, width), [], `${name} at ${width} columns`)
      const text = masked(`exit code ${code}\n${stdout}${stderr}`)
      sections.set(text, [...(sections.get(text) ?? []), width])
    }
    if (!OF_THIS_MACHINE.has(name) && !OF_ALL.has(name)) {
      const shown = [...sections].map(
        ([text, widths]) => `$ strowger ${masked(whole.join(' '))}\n# ${widths} columns, ${text}`,
      )
      printed.set(words[0] ?? '', [...(printed.get(words[0] ?? '') ?? []), ...shown])
    }
    if (!has_json) continue
    const { code, stdout, stderr } = await run([...whole, '--json'], 80)
    t.ok(code === 0 || stdout + stderr !== '', `${name} --json says why it failed`)
    for (const line of stdout.split('\n')) if (line !== '') t.doesNotThrow(() => JSON.parse(line), `${name}: ${line}`)
  }
  await close()
  mkdirSync(SNAPSHOTS, { recursive: true })
  for (const [name, sections] of printed) {
    const [text, file] = [sections.join('\n'), `${name}.txt`]
    writeFileSync(join(SNAPSHOTS, file), text)
    t.same(changes(acceptedText(file), text), [], `fixtures/cli/${file}: accept it by test-results/cli/${file}`)
  }
  t.same(
    readdirSync(ACCEPTED).sort(),
    [...printed.keys()].map(name => `${name}.txt`).sort(),
    'fixtures/cli has a file for each command, and no other',
  )
})

t.test('--version, and what nobody knows', async t => {
  t.match(await runCommand(['--version'], { env: {} }), { code: 0, stdout: /^\d+\.\d+\.\d+\n$/ })
  t.match((await runCommand(['--help'], { env: {} })).stdout, /backup[\s\S]*restore/)
  t.match(await runCommand(['fly'], { env: {} }), { code: 1, stderr: /unknown command 'fly'[\s\S]*Usage: strowger/ })
})

/** A command in a text, with what follows it. */
const NAMED = /(?<=[`'"]|bin\/)strowger ([a-z][^`'"\n\\|)]*)/g

/** Files that people read, and the console, whose empty pages name commands. */
function readerFiles(): string[] {
  const below = (folder: string, kind: RegExp): string[] =>
    readdirSync(join(TREE, folder), { recursive: true, encoding: 'utf8' })
      .filter(file => kind.test(file) && !file.startsWith('decisions'))
      .map(file => join(folder, file))
  return ['README.md', ...below('docs', /\.md$/), ...below('control/console', /\.tsx?$/)]
}

const on = (words: readonly string[]) => (word: string, at: number) => words[at] === word

t.test('every command that a document or the console names exists, with the options that follow it', async t => {
  const known = await allCommands()
  let found = 0
  for (const file of readerFiles())
    for (const [line, text = ''] of readFileSync(join(TREE, file), 'utf8').matchAll(NAMED)) {
      const given = text.trim().split(/[\s.,;]+/)
      const meant = known.find(({ words }) => words.every((word, at) => given[at] === word))
      // A text may name a group of commands. The key of client tokens is derived from words that look like one.
      if (!meant && (line.includes('client token') || known.some(({ words }) => given.every(on(words))))) continue
      found++
      if (!t.ok(meant, `${file}: ${line}`)) continue
      const options = new Set([...(meant?.command.options ?? []).map(({ long }) => long), '--help'])
      for (const [option] of text.matchAll(/(?<=\s)--[a-z][\w-]*/g)) t.ok(options.has(option), `${file}: ${line}`)
    }
  t.ok(found > 40, `${found} commands`)
})
