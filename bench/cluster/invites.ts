import type { State } from '../../core/state/index.ts'
import { brokenInvariants } from '../../core/state/maintenance/invariants.ts'
import type { UserAgentCall } from '../../signaling/edge/useragent/call.ts'
import { UserAgent } from '../../signaling/edge/useragent/user-agent.ts'
import { CALLED, PEER_IP } from '../platform/platform.ts'
import { offerOf } from '../set-up.ts'
import type { Made } from '../up.ts'
import { mostWithinASecond } from './ceilings.ts'
import { awaitEnds } from './left.ts'
import { listed, type Machine, onMachines } from './machines.ts'

// A peer sends 200 INVITEs at the same moment to three machines, by a trunk that may have 60 calls: each round has
// exactly 60 answered calls, whichever machines they are on. In every fifth round the trunk may have 30 calls a second
// instead.

const MACHINES = 3
const INVITES = 200
const OF_TRUNK = 60
const A_SECOND = 30
const UNLIMITED = 1000
const ENDED_WITHIN_MS = 30_000
const CEILINGS = ['concurrency_exceeded', 'cps_exceeded'] as const

interface Answered {
  readonly call: UserAgentCall
  /** Null: 200. Otherwise the status and why. */
  readonly refused: string | null
}

interface Found {
  over: number
  under: number
  answered: number
  refused: number
  /** Calls that were refused for another reason than a ceiling. */
  readonly failed: string[]
}

/** Runs the rounds and says how often a ceiling was passed, or not reached. */
export async function invites(rounds: number) {
  const found: Found = { over: 0, under: 0, answered: 0, refused: 0, failed: [] }
  const whole = { clock_ms: 0, by_wire: false } as const
  const broken = await onMachines(
    Array.from({ length: MACHINES }, () => whole),
    async (machines, state, trunk_id) => {
      const agent = await UserAgent.open({ listeners: [{ protocol: 'udp', host: PEER_IP, port: 0 }] })
      try {
        const caller = machines[0]?.made
        for (let round = 0; caller && round < rounds; round++)
          await run({ agent, machines, state, caller, trunk_id }, round, found)
        return await brokenInvariants(state.db)
      } finally {
        agent.close()
      }
    },
  )
  console.log(
    `${rounds} rounds of ${INVITES} INVITEs at ${MACHINES} machines: ${found.over} over, ${found.under} under, ` +
      `${found.answered} answered, ${found.refused} refused by a ceiling, ${found.failed.length} for another reason` +
      `${listed(found.failed)}\n${broken.length} broken invariants`,
  )
  return { rounds, ...found, broken, within_limits: found.over + found.under + broken.length === 0 }
}

interface Place {
  readonly agent: UserAgent
  readonly machines: readonly Machine[]
  readonly state: State
  readonly caller: Made
  readonly trunk_id: string
}

async function run(place: Place, round: number, found: Found): Promise<void> {
  const { agent, machines, state, caller, trunk_id } = place
  const by_second = round % 5 === 4
  await limit(state, trunk_id, by_second)
  const answers = await Promise.all(
    Array.from({ length: INVITES }, (_, at) => invite(agent, machines[at % MACHINES]?.sip_port ?? 0, caller)),
  )
  const answered = answers.filter(({ refused }) => refused === null)
  const refusals = answers.flatMap(({ refused }) => refused ?? [])
  const by_ceiling = refusals.filter(why => CEILINGS.some(ceiling => why.includes(ceiling)))
  found.answered += answered.length
  found.refused += by_ceiling.length
  found.failed.push(...refusals.filter(why => !by_ceiling.includes(why)))
  const use = state.db.selectFrom('level_use').select('takes').where('subject_id', '=', trunk_id)
  const most = mostWithinASecond((await use.executeTakeFirstOrThrow()).takes)
  if (by_second ? most > A_SECOND : answered.length > OF_TRUNK) found.over++
  if (answered.length < (by_second ? A_SECOND : OF_TRUNK)) found.under++
  for (const { call } of answered) call.hangUp()
  await awaitEnds(state, ENDED_WITHIN_MS)
}

function invite(agent: UserAgent, port: number, { numbers }: Made): Promise<Answered> {
  return new Promise(resolve => {
    const call: UserAgentCall = agent.call(`sip:${CALLED}@127.0.0.1:${port}`, {
      from: `<sip:${numbers[0]}@${PEER_IP}>`,
      body: offerOf(PEER_IP),
      events: {
        failed: response =>
          resolve({ call, refused: `${response?.status ?? 'silence'} ${response?.get('reason') ?? ''}` }),
        answered: () => resolve({ call, refused: null }),
      },
    })
  })
}

/** The admission reads the trunk's limits with each call. */
async function limit(state: State, trunk_id: string, by_second: boolean): Promise<void> {
  await state.transaction(async trx => {
    const limits = by_second ? { concurrency: UNLIMITED, cps: A_SECOND } : { concurrency: OF_TRUNK, cps: UNLIMITED }
    await trx.updateTable('trunk').set(limits).where('id', '=', trunk_id).execute()
    // A time of an earlier round is none of this one.
    await trx.updateTable('level_use').set({ takes: '' }).execute()
  })
}
