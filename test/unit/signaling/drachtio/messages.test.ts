import type { LibraryRequest } from '../../../../signaling/drachtio/library.ts'
import { requestView } from '../../../../signaling/drachtio/messages.ts'
import t from '../../../support/harness/index.ts'

// A request as the embedded edge and drachtio-server v0.9.10 report it.

function request(protocol: string, via: string): LibraryRequest {
  const headers = { via, 'call-id': 'a@test' }
  return {
    ...{ headers, body: undefined, method: 'REGISTER', uri: 'sip:example.test', source: 'network', protocol },
    ...{ source_address: '198.51.100.7', source_port: 40_000, stackTxnId: 'txn', stackDialogId: undefined },
    get: name => (headers as Readonly<Record<string, string>>)[name],
    getParsedHeader: () => null,
    on: () => undefined,
    cancel: () => undefined,
  }
}
const transport = (protocol: string, via: string) => requestView(request(protocol, via)).source.transport

t.test('a WebSocket is recognized behind drachtio-server, which reports tcp for ws and tls for wss', async t => {
  t.equal(transport('tcp', 'SIP/2.0/WS df7jal23ls0d.invalid;branch=z9hG4bK56sdasks'), 'ws')
  t.equal(transport('tls', 'SIP/2.0/WSS df7jal23ls0d.invalid;branch=z9hG4bK56sdasks'), 'wss')
  t.equal(transport('ws', 'SIP/2.0/WS df7jal23ls0d.invalid;branch=z9hG4bK56sdasks'), 'ws')
  t.equal(transport('tls', 'SIP / 2.0 / wss df7jal23ls0d.invalid;branch=z9hG4bK56sdasks'), 'wss')
})

t.test('a Via that contradicts the transport of the server is ignored', async t => {
  t.equal(transport('udp', 'SIP/2.0/WSS 198.51.100.7;branch=z9hG4bK1'), 'udp')
  t.equal(
    transport('tcp', 'SIP/2.0/WSS 198.51.100.7;branch=z9hG4bK1'),
    'tcp',
    'a Via does not make a plain connection encrypted',
  )
  t.equal(transport('tls', 'SIP/2.0/WS 198.51.100.7;branch=z9hG4bK1'), 'tls')
  t.equal(
    transport('tcp', 'SIP/2.0/TCP 198.51.100.7;branch=z9hG4bK1, SIP/2.0/WS 192.0.2.1'),
    'tcp',
    'only the topmost Via counts',
  )
  t.equal(transport('tcp', ''), 'tcp')
})
