import pino from 'pino'
import { deliver, inboundInvite, type Surroundings } from '../../../../signaling/drachtio/inbound.ts'
import type { LibraryAnswer, LibraryMessage, LibraryRequest } from '../../../../signaling/drachtio/library.ts'
import { CallerGone, type Dialog, type ServerEnd } from '../../../../signaling/drachtio/types.ts'
import t from '../../../support/harness/index.ts'

const HEADERS: Readonly<Record<string, string>> = {
  'call-id': 'abc@198.51.100.7',
  from: '<sip:+2348000000001@198.51.100.7>;tag=peer',
  to: '<sip:+2342010000001@203.0.113.1>',
  contact: '<sip:peer@198.51.100.7>',
}
const message = (to = HEADERS['to'] ?? ''): LibraryMessage => ({
  headers: { ...HEADERS, to },
  body: undefined,
  get: name => ({ ...HEADERS, to })[name],
  getParsedHeader: () => null,
})

function anInvite() {
  const sent: { status: number; done: (error?: string) => void }[] = []
  const dialogs: Surroundings['dialogs'] = new Map()
  let cancel = (): void => undefined
  const answer: LibraryAnswer = {
    finalResponseSent: false,
    stackDialogId: 'dialog-1',
    send: (status, _reason, _options, callback) =>
      sent.push({ status, done: (error = undefined) => callback(error ?? null, message(`${HEADERS['to']};tag=ours`)) }),
  }
  const request: LibraryRequest = {
    ...message(),
    ...{ method: 'INVITE', uri: 'sip:+2342010000001@203.0.113.1', source: 'network', protocol: 'udp' },
    ...{ source_address: '198.51.100.7', source_port: 5060, stackTxnId: 'txn-1', stackDialogId: undefined },
    on: (event: string, listener: unknown) => {
      if (event === 'cancel') cancel = () => (listener as (cancel: LibraryMessage) => void)(message())
    },
    cancel: () => undefined,
  }
  const around: Surroundings = {
    log: pino({ level: 'silent' }),
    reliable: () => true,
    dialogs,
    waiting: (_lost, work) => new Promise(work),
    handOver: () => ({}),
    dialog: facts => {
      dialogs.set(facts.id, () => undefined)
      return { ...facts, ended: false } as unknown as Dialog
    },
  }
  return { invite: inboundInvite(around, request, answer), sent, dialogs, cancel: () => cancel() }
}

t.test('a refusal after the 200 is ignored, and the dialog still receives requests', async t => {
  const { invite, sent, dialogs } = anInvite()
  void invite.progress(180)
  sent[0]?.done()
  const dialog = invite.accept({}, () => undefined)
  sent[1]?.done()
  // The far end has hung up in the same read, before the code that awaits the dialog has received it.
  invite.refuse(480)
  t.equal((await dialog).call_id, 'abc@198.51.100.7')
  t.ok(dialogs.has('dialog-1'), 'requests of the dialog are still accepted')
  t.same(
    sent.map(({ status }) => status),
    [180, 200],
  )
})

t.test(
  'a 200 that cannot reach the caller fails as CallerGone, and one that the SIP server refuses does not',
  async t => {
    for (const [said, gone] of [
      ['transport for response has been shutdown or closed', true],
      ['Response not sent due to unknown transaction', true],
      ['missing content-type', false],
    ] as const) {
      const { invite, sent } = anInvite()
      const dialog = invite.accept({}, () => undefined)
      sent[0]?.done(said)
      const error = await dialog.catch(failed => failed)
      t.equal(error instanceof CallerGone, gone, said)
      t.equal(error.message, said)
    }
  },
)

t.test('a refusal before the final response removes the early dialog', async t => {
  const { invite, sent, dialogs } = anInvite()
  void invite.progress(180)
  sent[0]?.done()
  t.ok(dialogs.has('dialog-1'))
  invite.refuse(480)
  t.notOk(dialogs.has('dialog-1'))
  t.same(
    sent.map(({ status }) => status),
    [180, 480],
  )
})

t.test('a provisional response sent after the end of the call leaves no early dialog behind', async t => {
  const refused = anInvite()
  void refused.invite.progress(180)
  refused.invite.refuse(480)
  refused.sent[0]?.done()
  t.equal(refused.dialogs.size, 0, 'refused before it was sent')
  const cancelled = anInvite()
  void cancelled.invite.progress(180)
  cancelled.cancel()
  cancelled.sent[0]?.done()
  t.equal(cancelled.dialogs.size, 0, 'cancelled before it was sent')
  const late = anInvite()
  void late.invite.progress(180)
  late.sent[0]?.done()
  late.cancel()
  t.equal(late.dialogs.size, 0, 'cancelled after it was sent')
})

t.test('a BYE of the SIP server reports why it ended the dialog, and a BYE of the peer does not', async t => {
  for (const [source, reason, server_end] of [
    ['application', 'SIP;cause=200;text="Session timer expired"', 'session_expired'],
    ['application', 'SIP;cause=200;text="ACK timeout"', 'no_ack'],
    ['application', 'SIP;cause=200;text="Call does not exist"', 'other'],
    ['network', 'SIP;cause=200;text="ACK timeout"', null],
  ] as const) {
    const request = {
      ...message(),
      ...{ method: 'BYE', uri: 'sip:us', source, protocol: 'udp', source_address: '198.51.100.7', source_port: 5060 },
      get: (name: string) => (name === 'reason' ? reason : HEADERS[name]),
    } as unknown as LibraryRequest
    const heard: (ServerEnd | null)[] = []
    deliver(pino({ level: 'silent' }), request, {} as LibraryAnswer, (_request, facts) => heard.push(facts.server_end))
    t.same(heard, [server_end], `${source}: ${reason}`)
  }
})
