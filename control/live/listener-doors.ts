import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { newId } from '../../core/runtime/ids.ts'
import { isListenerToken, LISTENER_TOKEN } from '../../core/runtime/listener-token.ts'
import { withoutScope } from '../http/access.ts'
import { projectOf } from '../http/project-context.ts'
import { isRefusal, notFound, type Refusal } from '../http/reply.ts'
import { refusalOf } from '../http/send.ts'
import type { HttpServices } from '../http/services.ts'
import { type Doors, entering, refuseUpgrade, targetOf } from '../http/upgrade.ts'
import { type CallListener, LISTENS } from './listeners.ts'

const CHECK_CREDENTIAL_MS = 60_000
const MAX_FRAME_BYTES = 64 * 1024

/** Admits the two ends: sources at `/listeners/<id>`, ears below the paths of `doors`. */
export function listenerDoors(services: HttpServices, doors: Doors) {
  const { clock, log, listeners, settings, state } = services
  const server = new WebSocketServer({ noServer: true, maxPayload: MAX_FRAME_BYTES, perMessageDeflate: false })
  const unknown = (): Refusal => notFound('this listener')

  const source = (request: IncomingMessage, id: string): CallListener | Refusal => {
    const token = request.headers[LISTENER_TOKEN]
    const proved = isListenerToken(settings.master_key, id, typeof token === 'string' ? token : '')
    return (proved && listeners.find(id)) || unknown()
  }

  const ear = async (request: IncomingMessage, id: string, door: Doors[string]): Promise<CallListener | Refusal> => {
    const caller = await entering(services, door, request)
    if (isRefusal(caller)) return caller
    const refused = withoutScope(caller, LISTENS)
    if (refused) return refused
    const listener = listeners.find(id)
    if (!listener || listener.owner !== caller.id) return unknown()
    const project = await projectOf(state.db, caller, listener.project_id)
    return isRefusal(project) ? unknown() : listener
  }

  /** A listener whose credential or scope is withdrawn hears no more. */
  const watch = (request: IncomingMessage, listener: CallListener, door: Doors[string], socket: WebSocket): void => {
    const timer = clock.every(CHECK_CREDENTIAL_MS, () => {
      ear(request, listener.id, door)
        .then(still => isRefusal(still) && listeners.end(listener, 'the credential is no longer good'))
        .catch(err => log.error({ err }, 'the credential of a listener could not be checked'))
    })
    socket.on('close', () => timer.cancel())
  }

  return {
    /** Handles the request for a WebSocket; false when it is of no listener. */
    upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
      const pathname = targetOf(request)?.pathname ?? ''
      const [, prefix = '', id = ''] = /^(.*)\/listeners\/(lsn_[0-9a-f-]{36})$/.exec(pathname) ?? []
      const door = Object.hasOwn(doors, prefix) ? doors[prefix] : undefined
      if (id === '' || (prefix !== '' && !door)) return false
      Promise.resolve(door ? ear(request, id, door) : source(request, id))
        .catch(error => refusalOf(error, services, { request_id: newId.request() }))
        .then(listener => {
          if (isRefusal(listener)) return refuseUpgrade(socket, listener, services)
          server.handleUpgrade(request, socket, head, opened => {
            if (!listeners.take(listener, door ? 'ear' : 'source', opened))
              opened.close(1008, 'another connection has this end')
            else if (door) watch(request, listener, door, opened)
          })
        })
        .catch(err => {
          log.error({ err }, 'a listener could not be admitted')
          socket.destroy()
        })
      return true
    },
    close() {
      listeners.endAll()
      server.close()
    },
  }
}
