/** The guarded HTTP client: the only way out of this platform over HTTP. */
export type { FetchError } from '../../domain/webhooks/errors.ts'
export { createHttpClient } from './client.ts'
export type { ResolveHost } from './resolve.ts'
export type * from './types.ts'
export { warmUpHttp } from './warm-up.ts'
