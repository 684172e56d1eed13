import { createHash } from 'node:crypto'
import { type AddressInfo, createServer } from 'node:net'
import { createConnectWebSocket } from '../../../../media/forks/connect.ts'
import t from '../../../support/harness/index.ts'
import { until } from '../../../support/wait.ts'

/** A text frame of a server (RFC 6455 §5.2). */
const frame = (text: string) => Buffer.concat([Buffer.of(0x81, text.length), Buffer.from(text)])

t.test('a frame that comes with the answer to the handshake is heard', async t => {
  const server = createServer(socket => {
    socket.on('error', () => undefined)
    socket.once('data', request => {
      const key = /^sec-websocket-key: *(\S+)/im.exec(request.toString())?.[1]
      const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
      const head = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade']
      const answer = [...head, `Sec-WebSocket-Accept: ${accept}`, '', ''].join('\r\n')
      socket.write(Buffer.concat([Buffer.from(answer), frame('at once')]))
      socket.once('data', () => socket.write(frame('later')))
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const connect = createConnectWebSocket(['loopback'])
  const connected = await connect(`ws://127.0.0.1:${port}/`, new AbortController().signal)
  if (!('socket' in connected)) throw new Error(connected.detail)
  const { socket } = connected
  const heard: string[] = []
  socket.on('message', data => heard.push(String(data)))
  t.teardown(() => {
    socket.terminate()
    server.close()
  })
  socket.send('more')
  await until('the server has answered', () => heard.includes('later'))
  t.same(heard, ['at once', 'later'])
})
