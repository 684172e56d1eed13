import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Bus, type BusBridge, connectBus, createBusHub, type Topic } from '../../core/runtime/bus.ts'
import type { Log } from '../../core/runtime/log.ts'
import type { Test } from './harness/index.ts'
import { until } from './wait.ts'

/** Starts the hub of a machine with a bridge. Returns the bus of a process of it. */
export async function busOfMachine(t: Test, log: Log, bridge: BusBridge): Promise<Bus> {
  const run_dir = mkdtempSync(join(tmpdir(), 'strowger-rings-'))
  const hub = await createBusHub(run_dir, log, bridge)
  const bus = connectBus(run_dir)
  t.teardown(async () => {
    await bus.close()
    hub.close()
    await bridge.close()
    rmSync(run_dir, { recursive: true })
  })
  return bus
}

/** Rings until the other side hears: a bridge may still connect. */
export async function ringUntilHeard(from: Bus, to: Bus, topic: Topic): Promise<void> {
  let heard = false
  const off = to.on(topic, () => {
    heard = true
  })
  await until(`${topic} is heard`, () => {
    from.ring(topic)
    return heard
  })
  off()
}
