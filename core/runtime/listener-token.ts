import { createHmac } from 'node:crypto'
import { sameSecret } from './secrets.ts'

/** The header by which the media worker proves that a stream to a listener is the platform's. */
export const LISTENER_TOKEN = 'x-strowger-listener'

/** Returns the proof, in hex, that its maker holds the master key. Each listener has its own. */
export const listenerToken = (master_key: Buffer, listener_id: string): string =>
  createHmac('sha256', master_key).update(`listener ${listener_id}`).digest('hex')

export const isListenerToken = (master_key: Buffer, listener_id: string, token: string): boolean =>
  sameSecret(token, listenerToken(master_key, listener_id))
