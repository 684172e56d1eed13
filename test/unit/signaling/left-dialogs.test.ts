import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { openState, type State } from '../../../core/state/index.ts'
import { registerNode, removeNode } from '../../../core/state/nodes/nodes.ts'
import { connectStack } from '../../../signaling/drachtio/stack.ts'
import type { SipStack } from '../../../signaling/drachtio/types.ts'
import { LeftDialogs } from '../../../signaling/left-dialogs.ts'
import { ManualClock } from '../../fuzz/edge/manual-clock.ts'
import { DrachtioPeer } from '../../support/drachtio-peer.ts'
import t, { type Test } from '../../support/harness/index.ts'
import { until } from '../../support/wait.ts'

// A drachtio-server keeps the dialogs of a lost signaling node, without a BYE to either far end.

const log = pino({ level: 'silent' })
const handler = (): void => undefined
const is = (method: string) => (message: { readonly method: string }) => message.method === method

async function opened(t: Test): Promise<State> {
  const data_dir = mkdtempSync(join(tmpdir(), 'strowger-left-'))
  const state = await openState({ data_dir })
  t.teardown(async () => {
    await state.close()
    rmSync(data_dir, { recursive: true, force: true })
  })
  return state
}

/** The part of a signaling node that is connected to the SIP server. */
async function node(t: Test, state: State, peer: DrachtioPeer, id: string) {
  const clock = new ManualClock()
  await registerNode(state.db, { id, kind: 'signaling', machine_id: 'M', boot_id: 'B', pid: 1 }, clock.now())
  const left = new LeftDialogs({ server: 'sip-server', state, clock, log })
  left.belongTo(id)
  const served = { hosts: ['192.0.2.1'], sip_port: 5060, sips_port: 5061, ws_port: 5066 }
  const sip = connectStack({
    ...{ host: '127.0.0.1', port: peer.port, secret: 'secret', log, clock, reliable: false, served },
    keeper: left,
  })
  t.teardown(() => sip.close())
  await until('the link is up', () => sip.connected)
  return { sip, left }
}

async function answeredCall(sip: SipStack, peer: DrachtioPeer) {
  const placed = sip.invite({ uri: 'sip:peer@198.51.100.7', headers: {}, body: '' }, { handler })
  peer.answer(await peer.next(is('INVITE')), 200)
  const answered = await placed.result
  if (answered.kind !== 'answered') throw new Error(answered.kind)
  return answered.dialog
}

const kept = async (state: State): Promise<string[]> =>
  (await state.db.selectFrom('sip_dialog').select('dialog_id').execute()).map(row => row.dialog_id)

async function server(t: Test, version?: string): Promise<DrachtioPeer> {
  const peer = await DrachtioPeer.open(version)
  t.teardown(() => peer.close())
  return peer
}

t.test('another node hangs up the dialogs of a lost node, and leaves those of a live one alone', async t => {
  const [state, peer] = [await opened(t), await server(t)]
  const lost = await node(t, state, peer, 'lost')
  const left = await answeredCall(lost.sip, peer)
  lost.sip.close()
  const living = await node(t, state, peer, 'living')
  await answeredCall(living.sip, peer)
  const heir = await node(t, state, peer, 'heir')
  await until('both are kept', async () => (await kept(state)).length === 2)
  await heir.left.sweep(heir.sip)
  t.equal((await kept(state)).length, 2, 'a node with a row may come back')
  await state.transaction(trx => removeNode(trx, 'lost'))
  await heir.left.sweep(heir.sip)
  const bye = await peer.next(is('BYE'))
  t.equal(bye.dialog_id, left.id)
  peer.answer(bye, 200)
  await until('one row remains', async () => (await kept(state)).length === 1)
})

t.test('a node whose link was lost hangs up the old dialogs over the new link', async t => {
  const [state, peer] = [await opened(t), await server(t)]
  const { sip, left } = await node(t, state, peer, 'one')
  const [first, second] = [await answeredCall(sip, peer), await answeredCall(sip, peer)]
  await until('both are kept', async () => (await kept(state)).length === 2)
  const lost = new Promise<void>(resolve => {
    sip.onLink(now => now || resolve())
  })
  peer.cut()
  await lost
  await first.bye()
  await until('the link is back', () => sip.connected)
  // The server has forgotten one of the dialogs.
  peer.dialogs.delete(second.id)
  await left.sweep(sip)
  const bye = await peer.next(is('BYE'))
  t.equal(bye.dialog_id, first.id)
  peer.answer(bye, 200)
  await until('nothing is left', async () => (await kept(state)).length === 0)
})

t.test('a dialog leaves no row, whether we or the peer end it', async t => {
  const [state, peer] = [await opened(t), await server(t)]
  const { sip } = await node(t, state, peer, 'one')
  const [ours, theirs] = [await answeredCall(sip, peer), await answeredCall(sip, peer)]
  await until('both are kept', async () => (await kept(state)).length === 2)
  const over = ours.bye()
  peer.answer(await peer.next(is('BYE')), 200)
  await over
  peer.bring('udp', byeFromPeer(theirs.call_id), theirs.id)
  await until('nothing is left', async () => (await kept(state)).length === 0)
  t.same(sip.counts(), { dialogs: 0, transactions: 0 })
})

t.test('no dialog of the embedded edge is stored, because the edge ends the dialogs of a lost node itself', async t => {
  const [state, peer] = [await opened(t), await server(t, 'v0.9.10-strowger')]
  const { sip } = await node(t, state, peer, 'one')
  await answeredCall(sip, peer)
  t.same(await kept(state), [])
})

const byeFromPeer = (call_id: string): string =>
  [
    'BYE sip:us@192.0.2.1 SIP/2.0',
    'Via: SIP/2.0/UDP 198.51.100.7;branch=z9hG4bKbye',
    'From: <sip:peer@198.51.100.7>;tag=answering',
    'To: <sip:us@192.0.2.1>;tag=ours',
    `Call-ID: ${call_id}`,
    'CSeq: 2 BYE',
    'Content-Length: 0',
    '\r\n',
  ].join('\r\n')
