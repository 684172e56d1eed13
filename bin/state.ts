import { connectBus, type Topic } from '../core/runtime/bus.ts'
import type { Config } from '../core/runtime/config.ts'
import { openState, type State } from '../core/state/index.ts'
import { presentConfig } from './installation.ts'

/** Runs a command on the state of this installation. The platform may be running or stopped. */
export async function withState<T>(work: (state: State, config: Config) => Promise<T>): Promise<T> {
  const config = presentConfig()
  const state = await openState({ ...config, here: true })
  try {
    return await work(state, config)
  } finally {
    await state.close()
  }
}

/** Wakes the listeners of the running platform, if any, because rows changed. */
export async function ring(config: Config, topic: Topic): Promise<void> {
  const bus = connectBus(config.run_dir)
  bus.ring(topic)
  await bus.close()
}
