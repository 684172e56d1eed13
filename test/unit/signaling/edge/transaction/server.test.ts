import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { draftResponse } from '../../../../../signaling/edge/sip/message.ts'
import { EdgeStack } from '../../../../../signaling/edge/stack.ts'
import type { ServerTransaction } from '../../../../../signaling/edge/transaction/server.ts'
import t from '../../../../support/harness/index.ts'

t.test('an answered transaction keeps its answer and not the request, which may be 60 kB long', async t => {
  const transactions: ServerTransaction[] = []
  const stack = await EdgeStack.open({
    listeners: [{ protocol: 'udp', host: '127.0.0.1', port: 0 }],
    user: {
      request: transaction => {
        transactions.push(transaction)
        transaction.respond(draftResponse(transaction.request, 200, 'ours'), 200)
        t.match(transaction.request.get('subject'), /^x{50000}$/, 'who answers may still read it')
      },
      ack: () => undefined,
      cancel: () => undefined,
    },
  })
  t.teardown(() => stack.close())
  const peer = createSocket('udp4').bind(0, '127.0.0.1')
  t.teardown(() => peer.close())
  await once(peer, 'listening')
  const { port } = peer.address()
  const request = [
    ...['OPTIONS sip:a@b SIP/2.0', `Via: SIP/2.0/UDP 127.0.0.1:${port};branch=z9hG4bKx`, 'From: <sip:c@d>;tag=1'],
    ...['To: <sip:a@b>', 'Call-ID: i', 'CSeq: 1 OPTIONS', `Subject: ${'x'.repeat(50_000)}`, '', ''],
  ].join('\r\n')
  const ask = async (): Promise<string> => {
    const answered = once(peer, 'message')
    peer.send(request, stack.transport.listeners[0]?.port ?? 0, '127.0.0.1')
    return String((await answered)[0])
  }
  const answer = await ask()
  t.match(answer, /^SIP\/2\.0 200 OK\r\n/)
  await setImmediate()
  t.equal(transactions[0]?.request.raw, '')
  t.equal(transactions[0]?.received.text, '')
  t.equal(await ask(), answer, 'a retransmission gets the same answer')
  t.equal(transactions.length, 1)
})
