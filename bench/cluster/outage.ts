import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { isPassing, openState, type State } from '../../core/state/index.ts'
import { brokenInvariants } from '../../core/state/maintenance/invariants.ts'
import { UserAgent } from '../../signaling/edge/useragent/user-agent.ts'
import { addTrunk, PEER_IP, priceAll } from '../platform/platform.ts'
import { startPostgres } from '../postgres-server.ts'
import { alive, openTalks, type Sound, type Talks } from '../soak/talks.ts'
import { freePort, startUp } from '../up.ts'
import { openWire } from '../wire.ts'

// PostgreSQL breaks off under calls with sound, comes back, breaks off again, and its standby takes its place. Then the
// signaling process is killed while the database is away, after calls have ended. Calls stay, their sound has no gap,
// and none lacks its record.

const AWAY_MS = 10_000
const LIMIT_MS = 60_000
const RTP_PORTS = '16000-31999'
/** Of design section 9. */
const LIMITS = { back_ms: 2000, refused_ms: 2000 } as const
const SYNCHRONOUS = ["alter system set synchronous_standby_names = '*'", 'select pg_reload_conf()']

/** Commits wait for the standby, which looks for its primary every 5 s otherwise. */
const FOLLOWS_AT_ONCE = { wal_retrieve_retry_interval: '100ms' }
/** How often calls that were refused are placed again, as on a machine that is busy. */
const MOST_TRIES = 10

interface Stage {
  readonly name: string
  readonly calls: number
  /** Calls that were alive after it. */
  readonly stayed: number
  readonly sound: Sound
  /** From the database's return until a new call was answered; null: none was. */
  readonly back_ms: number | null
  /** How, and how soon, a call was refused meanwhile; null: none was placed. */
  readonly refused: { readonly status: number; readonly ms: number } | null
}

/** Runs it with so many calls, prints what it found, and returns whether that is within the limits. */
export async function outage(calls: number): Promise<boolean> {
  const primary = await startPostgres({ port: await freePort(), settings: {} })
  const standby = await startPostgres({ port: await freePort(), settings: FOLLOWS_AT_ONCE, standby_of: primary.port })
  const way = await openWire({ host: '127.0.0.1', port: await freePort() }, { host: '127.0.0.1', port: primary.port })
  const target_port = await freePort()
  let stop = async (): Promise<void> => undefined
  try {
    const database_url = `postgres://strowger@127.0.0.1:${way.port},127.0.0.1:${standby.port}/postgres`
    for (const statement of SYNCHRONOUS) await primary.tell(statement)
    const platform = await startUp('outage', {
      ...{ STROWGER_DATABASE_URL: database_url, STROWGER_MASTER_KEY: randomBytes(32).toString('hex') },
      ...{ STROWGER_RTP_PORTS: RTP_PORTS, STROWGER_SANDBOX: 'off', STROWGER_LOG: 'fatal' },
    })
    stop = platform.stop
    const { folder, sip_port, made, pids } = platform
    const state = await openState({ data_dir: folder, database_url })
    await priceAll(state, await addTrunk(made, target_port), made.numbers[0] ?? '')
    const talks = await openTalks({ folder, sip_port, target_port })
    const end = async (): Promise<void> => {
      talks.close()
      await state.close()
      await platform.stop()
    }
    stop = end
    const media = pids['media'] ?? 0
    // Packets are lost, and nobody is told.
    const cut = await stage(
      'lost packets',
      { talks, calls, media },
      async () => way.blackhole(),
      () => way.mend(),
      sip_port,
    )
    const first = await stage('stop and return', { talks, calls, media }, primary.breakOff, primary.comeBack)
    const second = await stage('promotion', { talks, calls, media }, primary.breakOff, () =>
      standby.tell('select pg_promote()'),
    )
    const lost = await killed({ talks, state, calls, signaling: pids['signaling'] ?? 0 }, standby)
    return report([cut, first, second], lost)
  } finally {
    await stop()
    await way.close()
    await standby.remove()
    await primary.remove()
  }
}

async function stage(
  name: string,
  { talks, calls, media }: { readonly talks: Talks; readonly calls: number; readonly media: number },
  breakOff: () => Promise<void>,
  comeBack: () => Promise<unknown>,
  sip_port?: number,
): Promise<Stage> {
  const made = await connectAll(talks, calls)
  const sounding = talks.talk(made, AWAY_MS + 5000, media)
  await pause(1000)
  await breakOff()
  const refused = sip_port === undefined ? null : await untilRefused(sip_port)
  await pause(AWAY_MS)
  await comeBack()
  const back_ms = await talks.untilAnswered(LIMIT_MS)
  const sound = await sounding
  const stayed = made.filter(alive).length
  await talks.hangUp()
  return { name, calls: made.length, stayed, sound, back_ms, refused }
}

/** Connects so many calls, as far as the platform takes them. */
async function connectAll(talks: Talks, calls: number): Promise<Awaited<ReturnType<Talks['connect']>>> {
  const made = await talks.connect(calls)
  for (let tries = 0; tries < MOST_TRIES && made.length < calls; tries++)
    made.push(...(await talks.connect(calls - made.length)))
  return made
}

/** Places a call, and returns how soon it is refused. */
async function untilRefused(sip_port: number): Promise<NonNullable<Stage['refused']>> {
  const peer = await UserAgent.open({ listeners: [{ protocol: 'udp', host: PEER_IP, port: 0 }], user: 'peer' })
  const begun_ms = performance.now()
  const status = await new Promise<number>(resolve => {
    peer.call('sip:+2348030100000@127.0.0.1', {
      hop: `sip:127.0.0.1:${sip_port}`,
      body: `v=0\r\no=- 1 1 IN IP4 ${PEER_IP}\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 9 RTP/AVP 0\r\n`,
      events: { answered: ({ status }) => resolve(status), failed: response => resolve(response?.status ?? 0) },
    })
  })
  peer.close()
  return { status, ms: performance.now() - begun_ms }
}

/** Ends calls while the database is away, and kills the process that has to write their ends. */
async function killed(
  { talks, state, calls, signaling }: { talks: Talks; state: State; calls: number; signaling: number },
  server: { breakOff(): Promise<void>; comeBack(): Promise<void> },
): Promise<readonly string[]> {
  await connectAll(talks, calls)
  await server.breakOff()
  await talks.hangUp()
  // The ends are on the disk when the attempts to write them have failed.
  await pause(2000)
  process.kill(signaling, 'SIGKILL')
  await server.comeBack()
  for (let left = LIMIT_MS; left > 0 && (await running(state)) !== 0; left -= 500) await pause(500)
  const { rows } = await lackingRecords(state)
  const in_progress = await running(state)
  return [
    ...rows,
    ...(in_progress === 0 ? [] : [`${in_progress} calls are still in progress`]),
    ...(await brokenInvariants(state.db)),
  ]
}

const running = async ({ db }: State): Promise<number | null> => {
  try {
    return (await db.selectFrom('call').select('sid').where('ended_at', 'is', null).execute()).length
  } catch (error) {
    if (isPassing(error)) return null
    throw error
  }
}

/** Names answered calls that have no record, or that a lost node is the reason of, or no charge. */
async function lackingRecords({ db }: State): Promise<{ readonly rows: readonly string[] }> {
  const found = await db
    .selectFrom('call')
    .leftJoin('cdr', 'cdr.call_sid', 'call.sid')
    .leftJoin('ledger', 'ledger.call_sid', 'call.sid')
    .select(['call.sid', 'cdr.reason', 'cdr.call_sid', 'ledger.position'])
    .where('call.answered_at', 'is not', null)
    .where(eb =>
      eb.or([eb('cdr.call_sid', 'is', null), eb('ledger.position', 'is', null), eb('cdr.reason', '=', 'node_lost')]),
    )
    .execute()
  return {
    rows: found.map(({ sid, call_sid, reason }) => `${sid} has ${call_sid ? `the reason ${reason}` : 'no record'}`),
  }
}

function report(stages: readonly Stage[], lost: readonly string[]): boolean {
  let good = lost.length === 0
  for (const { name, calls, stayed, sound, back_ms, refused } of stages) {
    const told = refused === null || (refused.status === 503 && refused.ms <= LIMITS.refused_ms)
    const whole = told && stayed === calls && sound.silent_legs === 0 && back_ms !== null && back_ms <= LIMITS.back_ms
    if (refused) console.log(`${name}: a call was refused with ${refused.status} after ${Math.round(refused.ms)} ms`)
    good &&= whole
    console.log(
      `${name}: ${stayed} of ${calls} calls stayed, ${sound.loss_pct} % of their packets lost, ` +
        `${sound.silent_legs} silent legs; a new call was answered ${back_ms === null ? 'never' : `${Math.round(back_ms)} ms`} ` +
        `after the database was back${whole ? '' : '  OVER THE LIMIT'}`,
    )
  }
  console.log(`with a killed signaling process: ${lost.length} records lost`)
  for (const sentence of lost.slice(0, 10)) console.log(`  ${sentence}`)
  return good
}
