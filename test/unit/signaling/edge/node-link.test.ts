import { EventEmitter, once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import pino from 'pino'
import type { CallMessage } from '../../../../core/domain/ladder/message.ts'
import { ALL_ROLES } from '../../../../core/domain/machines/roles.ts'
import { systemClock } from '../../../../core/runtime/clock.ts'
import type { EdgeFacts, MachineLinks } from '../../../../core/runtime/edge-link.ts'
import { insertMessages } from '../../../../core/state/calls/ladder.ts'
import { saveEdgeLink } from '../../../../core/state/nodes/edge-links.ts'
import { registerNode } from '../../../../core/state/nodes/nodes.ts'
import type { TracedMessage } from '../../../../signaling/edge/index.ts'
import { Journal, readJournal } from '../../../../signaling/edge/journal.ts'
import { writeLadder } from '../../../../signaling/edge/ladder.ts'
import { openNodeLink } from '../../../../signaling/edge/node-link.ts'
import { serveEdge } from '../../../../signaling/serve-edge.ts'
import { admissionWorld } from '../../../support/admission-world.ts'
import { addCarrier } from '../../../support/carriers.ts'
import t, { type Test } from '../../../support/harness/index.ts'
import { until } from '../../../support/wait.ts'

const log = pino({ level: 'silent' })

/** Both ends of the link, and the database of the node. */
async function desk(t: Test, left: readonly CallMessage[] = [], there: readonly CallMessage[] = []) {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const { state } = w
  await insertMessages(state.db, { edge_id: 'mac_1', messages: there })
  const path = join(w.data_dir, 'edge.sock')
  const link = await openNodeLink(path, log)
  const journal = new Journal<CallMessage>(w.data_dir, error => t.fail(String(error)))
  const ladder = writeLadder(link, journal, left, systemClock)
  const bus = new EventEmitter()
  t.teardown(async () => {
    await ladder.close()
    link.close()
    journal.close()
  })
  const rung = { ring: () => undefined, close: async () => undefined }
  const on = (topic: string, listener: () => void) => {
    bus.on(topic, listener)
    return () => void bus.off(topic, listener)
  }
  /** Announces a new configuration revision, as every change of the configuration does. */
  const changed = async (ring = true) => {
    await state.db
      .updateTable('configuration')
      .set(eb => ({ revision: eb('revision', '+', 1) }))
      .execute()
    if (ring) bus.emit('configuration')
  }
  return {
    w,
    path,
    link,
    ladder,
    state,
    data_dir: w.data_dir,
    node: (nonce_key: Buffer | null = null, links: Parameters<typeof serveEdge>[0]['links'] = null) =>
      serveEdge({
        ...{ path, state, edge_id: 'mac_1', nonce_key, links, openRates: null, roles: ALL_ROLES },
        ...{ bus: { ...rung, on }, log, clock: systemClock },
      }),
    changed,
    kept: async () =>
      (await state.db.selectFrom('sip_message').select('sip_call_id').orderBy('id').execute()).map(
        row => row.sip_call_id,
      ),
  }
}

const invite = (call_id: string): TracedMessage => ({
  ...{ direction: 'in', protocol: 'udp', retransmission: false, at: 1_000 },
  ...{ local: { host: '127.0.0.1', port: 5060 }, remote: { host: '127.0.0.2', port: 5060 } },
  text: `INVITE sip:x SIP/2.0\r\nCall-ID: ${call_id}\r\nCSeq: 1 INVITE\r\nSubject: \u2028\r\n\r\n`,
})

t.test('the node stores the messages of the edge in order', async t => {
  const { ladder, node: start, kept } = await desk(t)
  for (let n = 0; n < 1200; n++) ladder.keep(invite(`call-${n}`))
  const node = await start()
  const rows = await until('all are stored', async () => {
    const found = await kept()
    return found.length >= 1200 && found
  })
  t.same(
    rows,
    Array.from({ length: 1200 }, (_, n) => `call-${n}`),
    'in order',
  )
  ladder.keep(invite('last'))
  await node.stop()
  t.equal((await kept()).at(-1), 'last', 'a stopping node stores the pending messages')
})

t.test('a peer that fills its dialog with requests fills no ladder, and the end of its call is kept', async t => {
  const { ladder, node: start, kept } = await desk(t)
  const node = await start()
  const of = (call_id: string, method: string): TracedMessage => ({
    ...invite(call_id),
    text: `${method} sip:x SIP/2.0\r\nCall-ID: ${call_id}\r\nCSeq: 9 ${method}\r\n\r\n`,
  })
  ladder.keep(invite('long'))
  for (let n = 0; n < 1500; n++) ladder.keep(of('long', 'INFO'))
  for (let n = 0; n < 3000; n++) ladder.keep(of('endless', 'INVITE'))
  ladder.keep(of('long', 'BYE'))
  ladder.keep(invite('another'))
  const rows = await until('the last one is stored', async () => {
    const found = await kept()
    return found.includes('another') && found
  })
  await node.stop()
  t.equal(rows.filter(id => id === 'long').length, 1001)
  t.equal(rows.filter(id => id === 'endless').length, 2000)
  t.same(rows.slice(-2), ['long', 'another'], 'the BYE, and other calls')
  t.equal(ladder.left_out, 501 + 1000)
})

t.test('a message that a node received and did not confirm is stored once by the next node', async t => {
  const { ladder, node, kept, path, data_dir } = await desk(t)
  ladder.keep(invite('one'))
  const lost = connect(path)
  await once(lost, 'data')
  lost.destroy()
  t.match(readJournal(data_dir), [{ sip_call_id: 'one' }], 'until then it stays in the journal')
  const first = await node()
  await until('it is stored', async () => (await kept()).length === 1)
  ladder.keep(invite('two'))
  await first.stop()
  t.same(await kept(), ['one', 'two'])
  await until('the journal is empty', () => readJournal(data_dir).length === 0)
})

t.test('the messages that a killed edge left are stored once, even if the node had stored some already', async t => {
  const row = (sip_call_id: string): CallMessage => ({
    ...{ sip_call_id, at_ms: 1, direction: 'in', protocol: 'udp', retransmission: 0, text: 'INVITE' },
    ...{ local: '127.0.0.1:5060', remote: '127.0.0.2:5060' },
  })
  const { node: start, kept, ladder } = await desk(t, [row('left'), row('other')], [row('left')])
  const node = await start()
  await until('they are stored', async () => (await kept()).includes('other'))
  ladder.keep(invite('new'))
  await node.stop()
  t.same(await kept(), ['left', 'other', 'new'])
})

t.test('a node sends the edge its configuration at once, and again when a change affects the edge', async t => {
  const { w, link, node: start, changed } = await desk(t)
  const told: EdgeFacts[] = []
  const keys: (string | undefined)[] = []
  let key: string | undefined
  link.onNonces = given => {
    key = given?.toString()
  }
  link.onFacts = facts => {
    told.push(facts)
    // The edge serves strangers once it has the facts.
    keys.push(key)
  }
  const first = await start()
  t.teardown(() => first.stop())
  await until('the edge has the configuration', () => told.length === 1)
  t.match(told[0], { carriers: [] })
  await changed()
  const carrier = { name: 'A', codecs: ['PCMU' as const], sources: ['203.0.113.0/24'], targets: [], routes: [] }
  await addCarrier(w.state, carrier, '2026-01-01T00:00:00.000Z')
  await changed()
  await until('the edge has the carrier', () => told.length === 2)
  t.match(told[1], { carriers: [{ cidrs: ['203.0.113.0/24'] }] }, 'nothing was sent in between')
  const second = await start(Buffer.from('the key of all machines'))
  t.teardown(() => second.stop())
  await until('the next node sends it again', () => told.length === 3)
  t.same(keys, [undefined, undefined, 'the key of all machines'], 'nonces come first')
  t.same(told[2], told[1])
})

t.test('a node knows when the edge was sent what is saved', async t => {
  const { w, link, node: start, changed } = await desk(t)
  const heard: string[] = []
  link.onFacts = ({ carriers }) => void heard.push(`${carriers.length} carriers`)
  link.onNote = (_to, text) => void heard.push(text)
  const node = await start()
  t.teardown(() => node.stop())
  await until('the edge has the configuration', () => heard.length === 1)
  const carrier = { name: 'A', codecs: ['PCMU' as const], sources: ['203.0.113.0/24'], targets: [], routes: [] }
  await addCarrier(w.state, carrier, '2026-01-01T00:00:00.000Z')
  await changed(false)
  await node.told()
  node.post.send('mac_2', 'told')
  await until('the note has come', () => heard.includes('told'))
  t.same(heard, ['0 carriers', '1 carriers', 'told'])
})

t.test('a node tells the edge where the edges of other machines are, and when one comes', async t => {
  const { state, link, node: start } = await desk(t)
  const machine = async (id: string, port: number | null): Promise<void> => {
    const node = { id: `node_${id}`, kind: 'signaling', machine_id: id, boot_id: 'boot', pid: 1 } as const
    await registerNode(state.db, node, Date.now())
    await saveEdgeLink(state.db, id, port === null ? null : { host: '192.0.2.1', port })
  }
  await machine('mac_2', 7002)
  await machine('mac_3', null)
  // Its node was lost.
  await saveEdgeLink(state.db, 'mac_5', { host: '192.0.2.1', port: 7005 })
  const told: MachineLinks[] = []
  link.onMachines = links => void told.push(links)
  const own = { machine_id: 'mac_1', host: '192.0.2.1', port: 7001 }
  const node = await start(null, { own, key: Buffer.from([1, 255]) })
  t.teardown(() => node.stop())
  await until('the edge knows the other machine', () => told.length > 0)
  const other = { machine_id: 'mac_2', host: '192.0.2.1', port: 7002 }
  t.same(
    told.at(-1),
    { own, key: '01ff', others: [other], homes: [], fronts: [] },
    'without those that lend nothing or are gone',
  )
  await machine('mac_4', 7004)
  await until('it hears of the new one', () => told.at(-1)?.others.length === 2)
})

t.test('queries of the edge are answered from the database, and fail when no node can answer', async t => {
  const message = (sip_call_id: string): CallMessage => ({
    ...{ sip_call_id, at_ms: 1, direction: 'in', protocol: 'udp', retransmission: 0, text: 'INVITE' },
    ...{ local: '127.0.0.1:5060', remote: '127.0.0.2:5060' },
  })
  const { link, node: start, path } = await desk(t, [], [message('left'), message('other')])
  await t.rejects(link.callsOf(['left']), /no signaling node/)
  let connected = (): void => undefined
  link.onFacts = () => connected()
  const met = new Promise<void>(resolve => {
    connected = resolve
  })
  const node = await start()
  await met
  t.match(await link.leftMessages(['left']), [{ sip_call_id: 'left', text: 'INVITE' }])
  t.same(await link.callsOf(['left']), new Map(), 'it belongs to no call')
  await node.stop()
  const deaf = connect(path)
  await once(deaf, 'connect')
  const asked = until('the query is sent', () =>
    link.callsOf(['left']).catch(({ message }) => /has disconnected/.test(message)),
  )
  const [question] = await once(deaf, 'data')
  t.match(String(question), /"kind":"calls"/)
  deaf.destroy()
  t.ok(await asked)
})
