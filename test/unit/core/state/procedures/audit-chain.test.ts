import { execFile } from 'node:child_process'
import { verifyChain } from '../../../../../core/state/people/audit.ts'
import { hashOf } from '../../../../../core/state/procedures/audit-chain.ts'
import { type ControlPlane, controlPlane } from '../../../../support/control-plane.ts'
import t, { type Test as Tap } from '../../../../support/harness/index.ts'

// The audit trail is append-only and chained by hashes, so that any tampering with its rows is detected.

const EVENTS = 5

async function trail(t: Pick<Tap, 'teardown'>) {
  const w = await controlPlane(t)
  for (let at = 0; at < EVENTS; at += 1) {
    const body = { url: `https://app.example.com/hook/${at}`, event_kinds: ['call.ended'] }
    const { status } = await w.ask('POST', '/v1/webhook-endpoints', { body, headers: { 'Idempotency-Key': `k${at}` } })
    if (status !== 201) throw new Error(`endpoint: ${status}`)
  }
  const rows = await w.state.db.selectFrom('audit_event').selectAll().orderBy('position').execute()
  const organization_id = rows[0]?.organization_id ?? ''
  const check = (expected?: string) => verifyChain(w.state.db, organization_id, expected)
  return { w, rows, organization_id, check }
}

type Rows = Awaited<ReturnType<typeof trail>>['rows']

const put = (w: ControlPlane, row: Rows[number]) => w.state.db.insertInto('audit_event').values(row).execute()
const drop = (w: ControlPlane, id: string) => w.state.db.deleteFrom('audit_event').where('id', '=', id).execute()

t.test('detects a change of any column of any event, and names the event', async t => {
  const { w, rows, check } = await trail(t)
  t.match(await check(), { intact: true, events: EVENTS, head: rows.at(-1)?.hash ?? 'none' })
  const [, second] = rows
  if (!second) throw new Error('no second event')
  for (const [column, value] of Object.entries(second)) {
    if (column === 'position' || column === 'organization_id') continue
    const other = typeof value === 'number' ? value + 1 : `${value ?? ''}x`
    await w.state.db
      .updateTable('audit_event')
      .set({ [column]: other })
      .where('position', '=', second.position)
      .execute()
    t.match(await check(), { intact: false, events: 2 }, column)
    await w.state.db
      .updateTable('audit_event')
      .set({ [column]: value })
      .where('position', '=', second.position)
      .execute()
  }
  t.match(await check(), { intact: true })
})

t.test('detects removed, moved, added and cut-off events', async t => {
  const { w, rows, check } = await trail(t)
  const [first, second, third] = rows
  const last = rows.at(-1)
  if (!first || !second || !third || !last) throw new Error('too few events')
  for (const row of [first, second, third]) {
    await drop(w, row.id)
    t.match(await check(), { intact: false, why: /removed, added or moved/ }, 'removed')
    await put(w, row)
  }
  t.match(await check(), { intact: true })
  await drop(w, last.id)
  t.match(await check(), { intact: false, event_id: null, why: '1 event after the last one was removed' })
  await put(w, last)

  await drop(w, second.id)
  await drop(w, third.id)
  await put(w, { ...second, position: third.position })
  await put(w, { ...third, position: second.position })
  t.match(await check(), { intact: false, event_id: third.id }, 'two swapped events')
  await drop(w, second.id)
  await drop(w, third.id)
  await put(w, second)
  await put(w, third)

  const forged = { ...last, id: 'aud_forged', position: last.position + 1, previous_hash: last.hash }
  await put(w, { ...forged, hash: hashOf(forged) })
  const { body } = await w.ask('GET', '/v1/audit?limit=1')
  t.equal(body.data.length, 1)
  const more = { url: 'https://app.example.com/more', event_kinds: ['call.ended'] }
  await w.ask('POST', '/v1/webhook-endpoints', { body: more, headers: { 'Idempotency-Key': 'more' } })
  t.match(await check(), { intact: false }, 'an event added after the last one')
})

t.test('a head stored elsewhere reveals cut-off events whose chain end was also reset', async t => {
  const { w, rows, organization_id, check } = await trail(t)
  const [, , , fourth, last] = rows
  if (!fourth || !last) throw new Error('too few events')
  await drop(w, last.id)
  const end = { hash: fourth.hash, events: EVENTS - 1 }
  await w.state.db.updateTable('audit_head').set(end).where('organization_id', '=', organization_id).execute()
  t.match(await check(), { intact: true }, 'the chain itself cannot reveal it')
  t.match(await check(last.hash), { intact: false, why: /the expected hash is not in it/ })
  t.match(await check(fourth.hash), { intact: true })
  await w.state.db.deleteFrom('audit_head').execute()
  t.match(await check(), { intact: false, why: /where the chain ends was removed/ })
})

t.test('strowger audit verify reports the damage, also by its exit code', async t => {
  const { w, rows, organization_id } = await trail(t)
  const strowger = (...args: string[]): Promise<{ code: number | null; printed: string }> =>
    new Promise(resolve => {
      const own = { STROWGER_DATA: w.settings.data_dir, STROWGER_MASTER_KEY: w.settings.master_key.toString('hex') }
      const env = { PATH: process.env['PATH'] ?? '', ...own }
      const child = execFile('bin/strowger', ['audit', 'verify', ...args], { env }, (_error, stdout, stderr) =>
        resolve({ code: child.exitCode, printed: stdout + stderr }),
      )
    })
  const head = rows.at(-1)?.hash ?? ''
  const good = await strowger('--organization', organization_id, '--expect', head)
  t.equal(good.code, 0, good.printed)
  t.match(good.printed, `intact, ${EVENTS} events, head ${head}`)
  await drop(w, rows[1]?.id ?? '')
  const bad = await strowger()
  t.equal(bad.code, 1, bad.printed)
  t.match(bad.printed, `NOT INTACT at ${rows[2]?.id}`)
})
