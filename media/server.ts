import { rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { Compile } from 'typebox/compile'
import type { Log } from '../core/runtime/log.ts'
import { frameReader, frameWriter } from './protocol/frames.ts'
import { MEDIA_METHODS, type MediaEvent, type MethodName } from './protocol/schema.ts'

/** Handles the requests of one client connection. */
export interface MediaPeer {
  /** Handles a request with valid parameters. Returns its result or `{refused, detail}`. */
  call(method: MethodName, params: never): object | Promise<object>
  /** The connection closed. */
  closed(): void
}

interface ProtocolServer {
  /** Ends the listener and every connection. */
  close(): Promise<void>
}

/** A client with more unread bytes is disconnected, so that the worker's memory stays bounded. */
const MAX_UNREAD_BYTES = 16 << 20

/**
 * Serves media/protocol on a Unix socket. Passes requests with valid parameters to the peers that `connected` makes.
 */
export function serveProtocol(
  path: string,
  log: Log,
  connected: (emit: (event: MediaEvent) => void) => MediaPeer,
): Promise<ProtocolServer> {
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    serveClient(socket, log, connected, () => sockets.delete(socket))
  })
  // Remove the socket of a killed worker, which would prevent listening. The supervisor runs one worker per folder.
  rmSync(path, { force: true })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ path, readableAll: false, writableAll: false }, () => {
      resolve({ close: () => closeAll(server, sockets) })
    })
  })
}

function serveClient(
  socket: Socket,
  log: Log,
  connected: (emit: (event: MediaEvent) => void) => MediaPeer,
  gone: () => void,
): void {
  const write = frameWriter(socket, () => {
    if (socket.writableLength > MAX_UNREAD_BYTES) socket.destroy(new Error('the client does not read its events'))
  })
  const peer = connected(write)
  socket.on(
    'data',
    frameReader(
      message => void answer(message, peer, log).then(write),
      detail => socket.destroy(new Error(detail)),
    ),
  )
  socket.on('error', error => log.warn({ detail: error.message }, 'media client connection failed'))
  socket.on('close', () => {
    gone()
    peer.closed()
  })
}

async function answer(message: Record<string, unknown>, peer: MediaPeer, log: Log): Promise<object> {
  const { id, method, params } = message
  const refusal = (reason: string, detail: string) => ({ id, error: { reason, detail } })
  if (typeof method !== 'string' || !Object.hasOwn(MEDIA_METHODS, method))
    return refusal('method_unknown', `no method is called ${String(method).slice(0, 60)}`)
  const name = method as MethodName
  const wrong = invalid(name, params)
  if (wrong !== null) return refusal('params_invalid', wrong)
  try {
    const result = await peer.call(name, params as never)
    return 'refused' in result
      ? refusal(String(result.refused), 'detail' in result ? String(result.detail) : '')
      : { id, result }
  } catch (err) {
    log.error({ err, method }, 'a media request failed')
    return refusal('internal', (err as Error).message)
  }
}

const validators = new Map<MethodName, ReturnType<typeof Compile>>()

/** Returns the first fault of the parameters, or null. Validators are compiled on first use. */
function invalid(method: MethodName, params: unknown): string | null {
  const validator = validators.get(method) ?? Compile(MEDIA_METHODS[method].params)
  validators.set(method, validator)
  if (validator.Check(params)) return null
  const [first] = validator.Errors(params)
  return first ? `${first.instancePath || 'params'} ${first.message}` : 'the parameters are wrong'
}

function closeAll(server: Server, sockets: ReadonlySet<Socket>): Promise<void> {
  return new Promise(resolve => {
    server.close(() => resolve())
    for (const socket of sockets) socket.end()
    // Do not wait for a client that keeps its half open.
    setTimeout(() => {
      for (const socket of sockets) socket.destroy()
    }, 200).unref()
  })
}
