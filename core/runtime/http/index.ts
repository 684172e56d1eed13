/** The guarded HTTP client. All outbound HTTP of the platform goes through it. */
export { createHttpClient } from './client.ts'
export { loadUndici } from './connect.ts'
export type * from './types.ts'
export { warmUpHttp } from './warm-up.ts'
