import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { loadUndici } from './connect.ts'

/** Loads undici, and makes it load now what it would load at its first connection. */
export async function warmUpHttp(): Promise<void> {
  const { Client } = await loadUndici()
  const server = createServer((_request, response) => response.end()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = new Client(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const { body } = await client.request({ path: '/', method: 'GET' })
  await body.dump()
  await client.close()
  server.close()
}
