// The two modules of undici that we load. Its types declare only its index.

declare module 'undici/lib/dispatcher/client.js' {
  export { Client as default } from 'undici'
}

declare module 'undici/lib/api/api-request.js' {
  import type { Client } from 'undici'

  const request: Client['request']
  export default request
}
