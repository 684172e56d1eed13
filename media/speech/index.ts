import type { HttpClient } from '../../core/runtime/http/index.ts'
import type { ConnectWebSocket } from '../forks/connect.ts'
import { httpRecognizer } from './over-http.ts'
import type { Recognizer } from './recognizer.ts'
import { webSocketRecognizer } from './web-socket.ts'

/** Returns a recognizer for the engine at the operator's URL; null without one. */
export function createRecognizer(
  url: string | null,
  ways: { readonly http: Pick<HttpClient, 'request'>; readonly connect: ConnectWebSocket },
): Recognizer | null {
  if (url === null) return null
  return /^wss?:/i.test(url) ? webSocketRecognizer(url, ways.connect) : httpRecognizer(url, ways.http)
}
