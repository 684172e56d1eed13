import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Command } from 'commander'
import { sharedAddresses } from '../core/domain/machines/addresses.ts'
import { ROLES, rolesInRow, speaksSip } from '../core/domain/machines/roles.ts'
import { visible } from '../core/domain/text/visible.ts'
import { runBare } from '../core/runtime/bare-child.ts'
import { addressesOf, httpBindOf, readSettings, type Settings } from '../core/runtime/config.ts'
import { databaseName } from '../core/runtime/database-url.ts'
import { machineOf } from '../core/runtime/machine.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { TREE } from '../core/runtime/tree.ts'
import { failure, openState, type State } from '../core/state/index.ts'
import { brokenInvariants } from '../core/state/maintenance/invariants.ts'
import { differingSettings, listMachines } from '../core/state/nodes/machines.ts'
import { machinesWithControl } from '../core/state/nodes/task-lease-rows.ts'
import { features } from '../native/index.ts'
import { painted, toneOf } from './colour.ts'
import { configurationLines } from './config.ts'
import { hindranceOfConfinement } from './confinement.ts'
import { examineDrachtio, examineExports } from './doctor-drachtio.ts'
import { productionWarnings } from './doctor-production.ts'
import { examineStore, type Finding } from './doctor-store.ts'
import { isWritable } from './files.ts'
import { fitted } from './fit.ts'
import { type Installation, TOLD_SOURCES, thisInstallation } from './installation.ts'
import { standing } from './least-privilege.ts'
import { platformProcess } from './pid-file.ts'
import { refuseForeignAddresses, tcpPortFree, udpPortFree } from './ports.ts'
import { orSayWhy } from './say.ts'
import { refuseOlder } from './state.ts'
import { fail, give, show, tell, terminal } from './terminal.ts'
import { hasState, refuseOtherPlace } from './where-state-is.ts'

/** Checks the rows of an existing database. An examination must not create one. */
async function rows(config: Settings): Promise<Finding[]> {
  const { database_url } = config
  if (!hasState(config.data_dir) && database_url === null) return []
  let state: State
  try {
    refuseOtherPlace(config)
    refuseOlder(config)
    state = await openState({ ...config, here: true })
  } catch (error) {
    if (database_url !== null && failure(error) === 'away') {
      const what = `the database ${databaseName(database_url)} answers`
      return [{ what, ok: false, mend: (error as Error).message }]
    }
    if (!(error instanceof StartRefused)) throw error
    return [{ what: 'the database is of this version', ok: false, mend: error.message }]
  }
  try {
    const broken = await brokenInvariants(state.db)
    return [
      {
        what: 'calls, slots, money and owners agree in the database',
        ok: broken.length === 0,
        mend: `${broken.join('; ')}. For counters run: strowger limits recount. Report it in any case`,
      },
      ...(await agreement(state, config)),
    ]
  } finally {
    await state.close()
  }
}

/** Checks that the machines which share the database run, do all the work, and have the same settings. */
async function agreement(state: State, { data_dir }: Settings): Promise<Finding[]> {
  const machines = await listMachines(state.db)
  const { machine_id } = machineOf(data_dir)
  const own = machines.find(({ id }) => id === machine_id)
  if (!own || machines.length < 2) return []
  // What runs here, the check of the ports says.
  const living = new Set([machine_id, ...(await machinesWithControl(state.db, state.clock.now()))])
  const silent = machines.filter(({ id }) => !living.has(id)).map(({ id, host }) => `${id} (${host})`)
  const running = machines.filter(({ id }) => living.has(id))
  const roles = new Set(running.flatMap(row => [...rolesInRow(row)]))
  const shared = sharedAddresses(
    running.map(row => ({
      id: row.id,
      hosts: [...new Set([row.host, ...row.hosts.split(' ')])].filter(host => host !== ''),
      edge: speaksSip(rolesInRow(row)),
    })),
  )
  const undone = ROLES.filter(role => !roles.has(role))
  const differs = machines.flatMap(({ id, settings }) => {
    const names = differingSettings(own.settings, settings)
    return names.length === 0 ? [] : [`${id} has other values of ${names.join(', ')}`]
  })
  return [
    { what: 'the machines have the same settings', ok: differs.length === 0, mend: differs.join('; ') },
    {
      what: 'each edge has an address of its own',
      ok: shared.length === 0,
      mend: `${shared.join('; ')}: set STROWGER_HOST of each edge`,
    },
    {
      what: `the ${machines.length} machines that share the database run`,
      ok: silent.length === 0,
      mend: `no sign of life of ${silent.join(', ')}: start it; a machine that never returns is forgotten after 30 days`,
    },
    {
      what: 'for each role a machine runs',
      ok: undone.length === 0,
      mend: `no machine that runs is ${undone.join(' or ')}: see STROWGER_ROLES`,
    },
  ]
}

/** Checks that the ports are free. While the platform runs, it holds them itself. */
async function ports(config: Settings): Promise<Finding[]> {
  const { roles } = config
  const running = await platformProcess(config.run_dir)
  if (running !== null) return [{ what: `the platform runs (${running}) and holds its ports`, ok: true, mend: '' }]
  // A drachtio-server holds the SIP ports.
  const embedded = config.drachtio === null && roles.has('edge')
  const sip: [string, number, string][] = [
    ['SIP over TCP', config.sip_port, 'STROWGER_SIP_PORT'],
    ['SIP over TLS', config.sips_port, 'STROWGER_SIPS_PORT'],
    ['SIP over WebSocket', config.ws_port, 'STROWGER_WS_PORT'],
  ]
  const http: [string, number, string] = ['HTTP', config.http_port, 'STROWGER_HTTP_PORT']
  const https: [string, number, string][] =
    config.https_port === null ? [] : [['HTTPS', config.https_port, 'STROWGER_HTTPS_PORT']]
  const tcp = [http, ...https, ...(embedded ? sip : [])]
  const binds = addressesOf(config).map(({ bind }) => bind)
  const free = async (
    check: (host: string, port: number) => Promise<boolean>,
    port: number,
    hosts = binds,
  ): Promise<boolean> => (await Promise.all(hosts.map(host => check(host, port)))).every(ok => ok)
  const over_tcp = await Promise.all(
    tcp.map(async ([what, port, variable]) => ({
      what: `${what} port ${port} is free`,
      ok: await free(tcpPortFree, port, port === config.http_port ? [httpBindOf(config)] : binds),
      mend: `free it or set ${variable}`,
    })),
  )
  return [
    ...over_tcp,
    ...(embedded
      ? [
          {
            what: `SIP over UDP port ${config.sip_port} is free`,
            ok: await free(udpPortFree, config.sip_port),
            mend: 'free it or set STROWGER_SIP_PORT',
          },
        ]
      : []),
    ...(roles.has('media')
      ? [
          {
            what: `RTP port ${config.rtp_ports.first} is free`,
            ok: await free(udpPortFree, config.rtp_ports.first),
            mend: 'free the range or set STROWGER_RTP_PORTS',
          },
        ]
      : []),
  ]
}

function rights(config: Settings): Finding[] {
  const at = standing(config)
  if (at.who === 'not_root') return []
  if (at.who === 'root') {
    const mend = `${at.why}; chown it to root, or run the platform as its owner`
    return [{ what: "the edge, media and sandbox run without root's rights", ok: false, mend }]
  }
  if (at.who === 'bare_root' && at.why === null)
    return [{ what: "the edge, media and sandbox run without root's rights, as user 0", ok: true, mend: '' }]
  const mend = at.who === 'own_users' ? '' : `${at.why}; until then they are user 0 without its rights`
  return [{ what: 'the edge, media and sandbox run as users of their own', ok: at.who === 'own_users', mend }]
}

/** Checks the machine and the configuration. Each failed check says how to fix it. */
async function examine(config: Settings, found: Installation): Promise<Finding[]> {
  const drachtio = await examineDrachtio(config)
  return [
    {
      what: `Node.js ${process.versions.node}`,
      ok: Number(process.versions.node.split('.')[0]) >= 20,
      mend: 'install Node.js 20.19 or later',
    },
    {
      what: 'native media plane is built',
      ok: existsSync(join(TREE, 'native/build/Release/media.node')),
      mend: 'run: npm run setup',
    },
    ...(config.roles.has('media') ? await sounds(config) : []),
    folder(found),
    await addresses(config),
    // The owners of folders decide, and the first start makes them.
    ...(existsSync(config.run_dir) ? rights(config) : []),
    ...(await rows(config)),
    ...(config.s3 ? [await examineStore(config.s3)] : []),
    ...(drachtio ? [drachtio, ...examineExports(config)] : []),
    ...(await ports(config)),
  ]
}

/** What a machine needs that runs the sound of calls. */
const sounds = async ({ g729: has_g729, stt }: Settings): Promise<Finding[]> => [
  { what: 'espeak-ng speaks', ok: await commandWorks('espeak-ng', '--version'), mend: 'apt-get install espeak-ng' },
  ...(has_g729 ? [g729()] : []),
  heard(stt),
]

const g729 = (): Finding => ({
  what: 'libbcg729 transcodes G.729',
  ok: features({ g729: true }).codecs.includes('G729'),
  mend: 'apt-get install libbcg729-0 (GPL-3), or set STROWGER_G729=off',
})

/** Speech recognition is optional, so its lack is told without a fault. */
const heard = (stt: Settings['stt']): Finding =>
  stt
    ? { what: `${stt.engine} recognises speech`, ok: true, mend: '' }
    : { what: 'no speech is recognised; apt-get install pocketsphinx pocketsphinx-en-us', ok: true, mend: '' }

const commandWorks = async (command: string, ...args: string[]): Promise<boolean> =>
  (await runBare(command, args, { max_bytes: 64 * 1024 })).ok

/** Checks the data folder; for one that is not there yet, the folder in which it will be made. */
function folder({ data_dir, source }: Installation): Finding {
  let at = data_dir
  while (!existsSync(at) && at !== dirname(at)) at = dirname(at)
  const state = hasState(data_dir) ? '' : '; it has no database, the first start makes one'
  const what = `data folder ${data_dir} (${TOLD_SOURCES[source]}) is writable${state}`
  return { what, ok: isWritable(at), mend: 'name another with --data or STROWGER_DATA' }
}

async function addresses(config: Settings): Promise<Finding> {
  const what = 'STROWGER_HOST and STROWGER_BIND are addresses of this machine'
  try {
    await refuseForeignAddresses(config)
    return { what, ok: true, mend: '' }
  } catch (error) {
    if (!(error instanceof StartRefused)) throw error
    return { what, ok: false, mend: error.message }
  }
}

/** Warns of a machine that cannot keep files and programs from the processes which handle strangers' packets. */
function unconfined({ confinement }: Settings): string[] {
  const why = confinement ? hindranceOfConfinement() : 'STROWGER_CONFINEMENT is off'
  return why === null ? [] : [`the edge, media and sandbox are not confined to their own files: ${why}`]
}

/** Prints a verdict with its colour, and what it is about. */
function judged(verdict: string, sentence: string): void {
  const { columns } = terminal()
  const lines = visible(`${verdict.padEnd(4)}  ${sentence}`)
  const [first = '', ...more] = (columns === null ? lines : fitted(lines, columns)).split('\n')
  show([painted(first.slice(0, 4), toneOf(verdict)) + first.slice(4), ...more])
}

export const doctorCommand = (): Command =>
  new Command('doctor').option('--json', 'as JSON').action(({ json }: { readonly json?: true }) =>
    orSayWhy(async () => {
      const found = thisInstallation()
      const config = readSettings(found.env)
      const findings = await examine(config, found)
      const warnings = [
        ...found.outdated.map(
          name => `${name} is ${found.env[name] ?? 'unset'} in the running platform; a restart takes the new value`,
        ),
        ...unconfined(config),
        ...productionWarnings(config),
      ]
      if (json) give(`${JSON.stringify({ findings, warnings })}\n`)
      else {
        for (const { what, ok, mend } of findings) judged(ok ? 'ok' : 'MEND', `${what}${ok ? '' : `: ${mend}`}`)
        for (const sentence of warnings) judged('WARN', sentence)
        tell('\nConfiguration:\n')
        show(configurationLines(found, terminal().columns ?? undefined))
      }
      if (findings.some(finding => !finding.ok)) fail()
    }),
  )
