import { openWire, type Wire } from '../../bench/wire.ts'
import type { Test } from './harness/index.ts'
import { freePort } from './ports.ts'

/** Opens a TCP way to a port of a loopback address, with the faults of networks. The test's end closes it. */
export async function wire(t: Test, to: number | { readonly host: string; readonly port: number }): Promise<Wire> {
  const far = typeof to === 'number' ? { host: '127.0.0.1', port: to } : to
  const made = await openWire({ host: '127.0.0.1', port: await freePort() }, far)
  t.teardown(() => made.close())
  return made
}
