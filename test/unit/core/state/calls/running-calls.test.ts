import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ending } from '../../../../../core/domain/calls/endings.ts'
import { hashOfNothing } from '../../../../../core/runtime/secrets.ts'
import { claimCommands, finishCommand } from '../../../../../core/state/calls/call-commands.ts'
import { addCallEvent } from '../../../../../core/state/calls/call-events.ts'
import {
  type CallStep,
  findCall,
  finishCall,
  insertCall,
  type NewCall,
  writeCall,
} from '../../../../../core/state/calls/running-calls.ts'
import { ensureDemo } from '../../../../../core/state/configuration/bootstrap.ts'
import { storeCallback } from '../../../../../core/state/delivery/outbox.ts'
import type { State } from '../../../../../core/state/index.ts'
import {
  endCallsOfLostNodes,
  heartbeat,
  NodeWatch,
  registerNode,
  tellLink,
} from '../../../../../core/state/nodes/nodes.ts'
import { freshState } from '../../../../support/fresh-state.ts'
import t, { type Test } from '../../../../support/harness/index.ts'
import { MACHINE } from '../../../../support/machine.ts'

const NOW = Date.UTC(2026, 10, 21, 12, 0, 0)
const at = (ms: number): string => new Date(NOW + ms).toISOString()

async function open(t: Test): Promise<{ state: State; project_id: string }> {
  const data_dir = mkdtempSync(join(tmpdir(), 'strowger-calls-'))
  const state = await freshState({ data_dir })
  t.teardown(async () => {
    await state.close()
    rmSync(data_dir, { recursive: true, force: true })
  })
  const master_key = Buffer.alloc(32, 7)
  const { project_id } = await ensureDemo(state, {
    master_key,
    now: at(0),
    hashOfPassword: async () => hashOfNothing(),
  })
  return { state, project_id }
}

const newCall = (project_id: string, sid: string, over: Partial<NewCall> = {}): NewCall => ({
  sid,
  project_id,
  account_sid: 'AC1',
  origin: 'rest',
  direction: 'outbound-api',
  from_number: '+2342010000001',
  to_number: '+2348030000001',
  status: 'queued',
  request: JSON.stringify({
    status_callback: 'http://customer.example/status',
    status_callback_events: ['initiated', 'ringing', 'answered', 'completed'],
  }),
  node_id: 'node_1',
  queued_at: at(0),
  ...over,
})

const callbacks = async (state: State, sid: string) => {
  const rows = await state.db.selectFrom('outbox').selectAll().where('call_sid', '=', sid).orderBy('id').execute()
  return rows.map(row => JSON.parse(row.parameters) as Record<string, string>)
}

t.test('a call in circles keeps its first and its latest events', async t => {
  const { state, project_id } = await open(t)
  await state.transaction(async trx => {
    await insertCall(trx, newCall(project_id, 'CA1'), NOW)
    for (let step = 1; step <= 1010; step++)
      await addCallEvent(trx, { call_sid: 'CA1', kind: 'http', number: null, detail: { step } }, NOW)
  })
  const rows = await state.db.selectFrom('call_event').select('detail').orderBy('id').execute()
  const steps = rows.map(({ detail }) => (JSON.parse(detail) as { step: number }).step)
  t.equal(steps.length, 1000)
  t.same([steps[0], steps[499], steps[500], steps.at(-1)], [1, 500, 511, 1010])
})

t.test('writes a call from its creation to its CDR and numbers its callbacks in order', async t => {
  const { state, project_id } = await open(t)
  await state.transaction(async trx => {
    await insertCall(trx, newCall(project_id, 'CA1'), NOW)
    await writeCall(trx, 'CA1', [
      { step: 'initiated', at_ms: NOW + 100, changes: { sip_call_id: 'abc' } },
      { step: 'ringing', at_ms: NOW + 200 },
      { step: 'answered', at_ms: NOW + 1000 },
    ])
    const end = ending({ cause: 'called_hung_up', answered: true })
    await finishCall(trx, 'CA1', { ending: end, ended_ms: NOW + 4999, pdd_ms: 42, media: null })
  })
  t.match(await findCall(state.db, 'CA1'), {
    status: 'completed',
    duration_seconds: 3,
    ended_by: 'called',
    ended_at: at(4999),
  })
  t.match(await state.db.selectFrom('cdr').selectAll().execute(), [
    {
      call_sid: 'CA1',
      status: 'completed',
      duration_seconds: 3,
      pdd_ms: 42,
      started_at: at(100),
      answered_at: at(1000),
    },
  ])
  t.match(await callbacks(state, 'CA1'), [
    { CallStatus: 'initiated', SequenceNumber: '0' },
    { CallStatus: 'ringing', SequenceNumber: '1' },
    { CallStatus: 'in-progress', SequenceNumber: '2' },
    { CallStatus: 'completed', SequenceNumber: '3', CallDuration: '3', SipCallId: 'abc' },
  ])
})

// The answer to a commit may be lost, and the steps are written again (decision 1053).
t.test('a writer that repeats its steps tells nobody twice and adds no attempt', async t => {
  const { state, project_id } = await open(t)
  const { db } = state
  const kinds = ['call.initiated', 'call.ringing', 'call.answered', 'call.ended']
  const endpoint = {
    ...{ id: 'whe_1', project_id, url: 'http://customer.example/events', event_kinds: JSON.stringify(kinds) },
    ...{ enabled: 1 as const, secret_sealed: '', revision: 1, created_at: at(0), updated_at: at(0) },
  } as const
  await db.insertInto('webhook_endpoint').values(endpoint).execute()
  // The row of a peer's call has its time of initiation from the beginning.
  await insertCall(db, newCall(project_id, 'CA1', { initiated_at: at(100) }), NOW)
  const attempt = (sequence: number, carrier_id: string): CallStep[] => [
    { step: 'attempt', at_ms: NOW + 100, attempt: { sequence, target: 'sip:1', transport: 'udp', carrier_id } },
    { step: 'initiated', at_ms: NOW + 100, changes: { carrier_id } },
    { step: 'attempt_changed', sequence, changes: { sip_code: 503 } },
  ]
  const facts = {
    ...{ ending: ending({ cause: 'called_hung_up', answered: true }), ended_ms: NOW + 5000 },
    ...{ pdd_ms: null, media: null },
  }
  const writes: CallStep[][] = [
    attempt(1, 'car_1'),
    attempt(2, 'car_2'),
    [{ step: 'ringing', at_ms: NOW + 200 }],
    [{ step: 'answered', at_ms: NOW + 1000, untold: true }],
    [{ step: 'answer_told', at_ms: NOW + 1000, extra: { AnsweredBy: 'human' } }],
    [{ step: 'end', facts }],
  ]
  for (const steps of writes) for (const _ of ['written', 'written again']) await writeCall(db, 'CA1', steps)
  t.match(await callbacks(state, 'CA1'), [
    { CallStatus: 'initiated', SequenceNumber: '0' },
    { CallStatus: 'initiated', SequenceNumber: '1' },
    { CallStatus: 'ringing', SequenceNumber: '2' },
    { CallStatus: 'in-progress', SequenceNumber: '3', AnsweredBy: 'human' },
    { CallStatus: 'completed', SequenceNumber: '4' },
  ])
  t.same(
    (await db.selectFrom('webhook_delivery').select('event_kind').orderBy('position').execute()).map(
      ({ event_kind }) => event_kind,
    ),
    ['call.initiated', ...kinds],
  )
  t.match(await db.selectFrom('call_attempt').select(['sequence', 'sip_code']).orderBy('id').execute(), [
    { sequence: 1, sip_code: 503 },
    { sequence: 2, sip_code: 503 },
  ])
  t.equal((await findCall(db, 'CA1'))?.ringing_at, at(200))
})

t.test('text that a customer chose for other callbacks to the URL is not taken for those of the call', async t => {
  const { state, project_id } = await open(t)
  const text = '"CallbackSource":"call-progress-events"'
  await state.transaction(async trx => {
    await insertCall(trx, newCall(project_id, 'CA1'), NOW)
    const about = { kind: 'status_callback', call_sid: 'CA1', project_id, method: 'POST' } as const
    const url = 'http://customer.example/status'
    for (const named of ['call-progress-events', text])
      await storeCallback(trx, {
        ...{ ...about, url, now_ms: NOW + 1000 },
        parameters: { CallStatus: 'in-progress', FriendlyName: named, [named]: named },
      })
    await writeCall(trx, 'CA1', [
      { step: 'answered', at_ms: NOW + 1000, untold: true },
      { step: 'answer_told', at_ms: NOW + 1000, extra: { AnsweredBy: 'human' } },
    ])
  })
  t.match((await callbacks(state, 'CA1'))[2], { SequenceNumber: '0', AnsweredBy: 'human' })
})

t.test('ends a call once, and a clock set back gives no negative duration', async t => {
  const { state, project_id } = await open(t)
  const finish = (ended_ms: number) =>
    state.transaction(trx =>
      finishCall(trx, 'CA1', { ending: ending({ cause: 'api', answered: true }), ended_ms, pdd_ms: null, media: null }),
    )
  await state.transaction(async trx => {
    await insertCall(trx, newCall(project_id, 'CA1'), NOW)
    await writeCall(trx, 'CA1', [{ step: 'answered', at_ms: NOW }])
  })
  t.match(await finish(NOW - 3_600_000), { duration_seconds: 0, ended_at: at(0) })
  t.equal(await finish(NOW + 1000), undefined)
  t.equal((await state.db.selectFrom('cdr').selectAll().execute()).length, 1)
  const late = await writeCall(state.db, 'CA1', [{ step: 'ringing', at_ms: NOW }])
  t.equal(late.running, false, 'nothing changes after the end')
})

t.test('ends calls of a node without a heartbeat as lost; those of a live one continue', async t => {
  const { state, project_id } = await open(t)
  await registerNode(state.db, { id: 'node_1', kind: 'signaling', ...MACHINE, pid: 1 }, NOW)
  await registerNode(state.db, { id: 'node_2', kind: 'signaling', ...MACHINE, pid: 2 }, NOW)
  await tellLink(state.db, { id: 'node_1-edge', kind: 'edge', ...MACHINE, pid: 1 }, true, NOW)
  await state.transaction(async trx => {
    await insertCall(trx, newCall(project_id, 'CA1'), NOW)
    await writeCall(trx, 'CA1', [{ step: 'answered', at_ms: NOW - 5000 }])
    await insertCall(trx, newCall(project_id, 'CA2', { node_id: 'node_2' }), NOW)
    await insertCall(trx, newCall(project_id, 'CA3'), NOW)
  })
  const clock = (ms: number) => ({ now: () => NOW + ms, monotonic_ms: () => ms })
  const watch = new NodeWatch()
  for (const ms of [5000, 12_000]) t.same(await endCallsOfLostNodes(state, clock(ms), watch), [], 'not yet')
  await heartbeat(state.db, 'node_2', NOW + 12_000)
  const ended = await endCallsOfLostNodes(state, clock(20_000), watch)
  t.same(ended.sort(), ['CA1', 'CA3'])
  t.match(await findCall(state.db, 'CA1'), { status: 'completed', reason: 'node_lost', duration_seconds: 5 })
  t.match(await findCall(state.db, 'CA3'), { status: 'failed', reason: 'node_lost', sip_code: 503 })
  t.equal((await findCall(state.db, 'CA2'))?.ended_at, null)
  const nodes = await state.db.selectFrom('node').select('id').execute()
  t.same(nodes, [{ id: 'node_2' }], 'the lost node and its links are deleted')
  t.same(await endCallsOfLostNodes(state, clock(21_000), watch, { dead: row => row.id === 'node_2' }), ['CA2'])
})

t.test('judges a node’s silence by the observer’s monotonic clock, not by the wall clock', async t => {
  const HOUR = 3_600_000
  const row = (id: string, heartbeat_ms: number) => ({ id, heartbeat_at: at(heartbeat_ms), attested_at: null })
  const look = (watch: NodeWatch, steady_ms: number, nodes: ReturnType<typeof row>[]) =>
    watch.silent(nodes, steady_ms).map(({ id }) => id)
  const watch = new NodeWatch()
  t.same(look(watch, 0, [row('lives', 0), row('gone', -HOUR)]), [], 'one look tells nothing, however old it seems')
  t.same(look(watch, 5000, [row('lives', HOUR), row('gone', -HOUR)]), [], 'its clock was set forward')
  t.same(look(watch, 10_000, [row('lives', -HOUR), row('gone', -HOUR)]), [], 'and back')
  t.same(look(watch, 15_000, [row('lives', -HOUR + 1), row('gone', -HOUR)]), ['gone'])
  for (const steady_ms of [20_000, 25_000]) t.same(look(watch, steady_ms, [row('lives', -HOUR + 1)]), [])
  t.same(look(watch, 30_000, [row('lives', -HOUR + 1)]), ['lives'])
})

t.test('an observer that was stopped or without storage for a while begins to watch anew', async t => {
  const nodes = [{ id: 'lives', heartbeat_at: at(0), attested_at: null }]
  const away = new NodeWatch()
  t.same(away.silent(nodes, 0), [])
  t.same(away.silent(nodes, 10_000), [])
  t.same(away.silent(nodes, 20_001), [], 'the database was away for 10 s, and the node may not have reached it yet')
  t.same(away.silent(nodes, 30_000), [])
  t.same(away.silent(nodes, 35_001), nodes)
})

t.test('a node that another machine attests is lost after ten minutes, or 15 s after the last word of it', async t => {
  const watch = new NodeWatch()
  const look = (second: number, attested: number | null) => {
    const row = { id: 'cut_off', heartbeat_at: at(0), attested_at: attested === null ? null : at(attested) }
    return watch.silent([row], second * 1000).length > 0
  }
  t.equal(look(0, null), false)
  for (let second = 5; second < 600; second += 5) t.equal(look(second, second), false, `after ${second} s`)
  t.equal(look(600, 600), true, 'ten minutes without a heartbeat')
  const other = new NodeWatch()
  const row = (attested_at: string | null) => [{ id: 'cut_off', heartbeat_at: at(0), attested_at }]
  for (const second of [0, 5, 10]) t.same(other.silent(row(null), second * 1000), [])
  for (const second of [15, 20, 25]) t.same(other.silent(row(at(12)), second * 1000), [])
  t.equal(other.silent(row(at(12)), 30_000).length, 1, 'nobody has heard it since')
})

t.test('measures a call’s duration by the monotonic clock despite wall clock jumps', async t => {
  const { state, project_id } = await open(t)
  for (const [sid, jump_ms] of [
    ['CA1', 3_600_000],
    ['CA2', -3_600_000],
  ] as const) {
    await state.transaction(async trx => {
      await insertCall(trx, newCall(project_id, sid), NOW)
      await writeCall(trx, sid, [{ step: 'answered', at_ms: NOW }])
    })
    const end = ending({ cause: 'api', answered: true })
    const ended_ms = NOW + 90_000 + jump_ms
    const finished = await state.transaction(trx =>
      finishCall(trx, sid, { ending: end, ended_ms, duration_seconds: 90, pdd_ms: null, media: null }),
    )
    t.equal(finished?.duration_seconds, 90)
    const cdr = await state.db.selectFrom('cdr').selectAll().where('call_sid', '=', sid).executeTakeFirstOrThrow()
    t.equal(cdr.duration_seconds, 90)
    t.ok(Date.parse(cdr.ended_at) - NOW >= 90_000, 'the end does not precede it')
  }
})

t.test('the node that runs the call takes each command once, in order', async t => {
  const { state, project_id } = await open(t)
  await state.transaction(async trx => {
    for (const [sid, node_id] of [
      ['CA1', null],
      ['CA2', null],
      ['CA3', 'node_2'],
    ] as const)
      await insertCall(trx, newCall(project_id, sid, { node_id }), NOW)
    const command = { payload: '{}', created_at: at(0), taken_by: null, done_at: null, outcome: null }
    for (const [call_sid, kind] of [
      ['CA1', 'originate'],
      ['CA1', 'cancel'],
      ['CA2', 'originate'],
      ['CA3', 'hangup'],
    ] as const)
      await trx
        .insertInto('call_command')
        .values({ ...command, call_sid, kind })
        .execute()
  })
  const taken = await claimCommands(state, 'node_1', { originates: 1, limit: 10 })
  t.same(
    taken.map(command => [command.call_sid, command.kind]),
    [['CA1', 'originate']],
  )
  t.equal((await findCall(state.db, 'CA1'))?.node_id, 'node_1')
  const next = await claimCommands(state, 'node_1', { originates: 0, limit: 10 })
  t.same(
    next.map(command => [command.call_sid, command.kind]),
    [['CA1', 'cancel']],
    'the cancel of a call that is ours now; no further call',
  )
  for (const command of [...taken, ...next]) await finishCommand(state.db, command.id, 'done', NOW)
  t.same(await claimCommands(state, 'node_1', { originates: 0, limit: 10 }), [])
  t.match(await claimCommands(state, 'node_2', { originates: 0, limit: 10 }), [{ call_sid: 'CA3', kind: 'hangup' }])
})
