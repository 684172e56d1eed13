/** The guarded HTTP client: the only way out of this platform over HTTP. */
export { createHttpClient } from './client.ts'
export type * from './types.ts'
export { warmUpHttp } from './warm-up.ts'
