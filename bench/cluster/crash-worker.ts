import { ending } from '../../core/domain/calls/endings.ts'
import { iso } from '../../core/runtime/clock.ts'
import { admitCall, callsOfNode, endLostCall, writeCall } from '../../core/state/calls/running-calls.ts'
import { freeCallbacks } from '../../core/state/delivery/outbox-delivery.ts'
import { failure, isPassing, openState, type State } from '../../core/state/index.ts'
import { endCallsOfLostNodes, NodeWatch, registerNode } from '../../core/state/nodes/nodes.ts'
import { appendAudit, INSTALLATION } from '../../core/state/people/audit.ts'
import { callOf, requestOf, type Sizes } from '../admission/data.ts'
import { seeded } from '../random.ts'
import { AGAIN_MS, deliver, insistently, rest } from './crash-deliveries.ts'

// A process of `npm run bench -- cluster --only crashes`: it admits, answers and ends calls, and writes to the audit
// trail, at random, until it is killed. It tells what the state has acknowledged.

export interface WorkerTask {
  readonly database_url: string
  readonly sizes: Sizes
  readonly machine_id: string
  /** Different for each process. Its calls and events are named after it. */
  readonly run: number
  readonly seed: number
}

export type Acknowledged =
  | { readonly did: 'began' | 'admitted' | 'refused' | 'answered' | 'ended' | 'audited'; readonly id: string }
  /** The id is what `deliver` says. */
  | { readonly did: 'delivered'; readonly id: string }
  | { readonly did: 'erred'; readonly id: string }

const MOST_RUNNING = 12
/** Each call reports its beginning, its answer and its end to this URL. */
const REPORTS = {
  status_callback: 'https://callbacks.bench.test/calls',
  status_callback_events: ['initiated', 'answered', 'completed'],
}
/** Runs of one process at most. */
const CALLS_OF_RUN = 100_000

const tell = (did: Acknowledged['did'], id: string): void => void process.send?.({ did, id } satisfies Acknowledged)

async function run(state: State, { sizes, machine_id, run, seed }: WorkerTask): Promise<never> {
  const random = seeded(seed)
  const node_id = `node_${run}`
  const machine = { machine_id, boot_id: 'boot_1' }
  await insistently(() =>
    registerNode(state.db, { id: node_id, kind: 'signaling', ...machine, pid: process.pid }, now()),
  )
  const dead = (row: { readonly id: string; readonly machine_id: string }) =>
    row.machine_id === machine_id && row.id !== node_id
  await insistently(() => endCallsOfLostNodes(state, state.clock, new NodeWatch(), { dead }))
  const deliverer = `${machine_id} ${run}`
  await insistently(() => freeCallbacks(state.db, by => by.startsWith(`${machine_id} `) && by !== deliverer))
  tell('began', node_id)
  const running = new Map<string, boolean>()
  let next = run * CALLS_OF_RUN
  const admit = async (): Promise<void> => {
    const request = { ...requestOf(next++, sizes), node_id }
    const call = callOf(request)
    const reporting = { ...call, request: JSON.stringify({ ...JSON.parse(call.request ?? '{}'), ...REPORTS }) }
    const asked = { call: reporting, requests: [request], verstat: null, now_ms: now() }
    // A caller is not asked again: whether the call was admitted may be unknown.
    const admitted = await admitCall(state.db, asked).catch(error => {
      if (!isPassing(error)) throw error
    })
    if (!admitted) return rest()
    if (admitted.decided.admitted) running.set(request.call_sid, false)
    tell(admitted.decided.admitted ? 'admitted' : 'refused', request.call_sid)
  }
  const answer = async (sid: string): Promise<void> => {
    await insistently(() => writeCall(state.db, sid, [{ step: 'answered', at_ms: now() }]))
    running.set(sid, true)
    tell('answered', sid)
  }
  const end = async (sid: string, answered: boolean): Promise<void> => {
    const facts = { ending: ending({ cause: 'caller_hung_up', answered }), pdd_ms: 840, media: null }
    const duration_seconds = answered ? Math.floor(random() * 90) : 0
    running.delete(sid)
    await insistently(() =>
      writeCall(state.db, sid, [{ step: 'end', facts: { ...facts, duration_seconds, ended_ms: now() } }]),
    )
    tell('ended', sid)
  }
  const audit = async (): Promise<void> => {
    const id = `aud_${run}_${next++}`
    await insistently(() => state.transaction(trx => appendAudit(trx, event(id)))).catch(error => {
      // The event was written by a commit whose answer was lost.
      if (failure(error) !== 'unique') throw error
    })
    tell('audited', id)
  }
  /** Ends calls whose admission was committed although its answer was lost. */
  const sweep = async (): Promise<void> => {
    for (const call of await insistently(() => callsOfNode(state.db, node_id)))
      if (!running.has(call.sid))
        await insistently(() => endLostCall(state, call, { cause: 'internal', ended_ms: now() }))
  }
  for (let step = 1; ; step++) {
    const [sid, answered] = [...running][Math.floor(random() * running.size)] ?? []
    const draw = random()
    if (step % 50 === 0) await sweep()
    if (draw < 0.05) await audit()
    else if (draw < 0.15) await deliver(state, deliverer, id => tell('delivered', id))
    else if (sid === undefined || (draw < 0.5 && running.size < MOST_RUNNING)) await admit()
    else if (!answered && draw < 0.75) await answer(sid)
    else await end(sid, answered ?? false)
  }
}

const event = (id: string) =>
  ({
    ...{ id, organization_id: INSTALLATION, project_id: null, at: iso(now()), category: 'operator', kind: 'alerts' },
    ...{
      actor: { type: 'operator', id: null, name: 'bench', detail: null },
      action: 'crash',
      summary: id,
      detail: null,
    },
    ...{ resource: { type: 'call', id, name: id, href: null }, trunk_id: null, from_revision: null, to_revision: null },
    ...{ request_id: null, changes: [] },
  }) as Parameters<typeof appendAudit>[1]

const now = (): number => Date.now()

const task = JSON.parse(process.argv[2] ?? '') as WorkerTask
process.once('disconnect', () => process.exit(0))
insistently(() => openState({ data_dir: '', database_url: task.database_url }))
  .then(state => run(state, task))
  .catch(error => {
    tell('erred', error instanceof Error ? (error.stack ?? error.message) : String(error))
    setTimeout(() => process.exit(1), AGAIN_MS)
  })
