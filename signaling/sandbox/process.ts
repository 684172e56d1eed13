import { loadSettings } from '../../core/runtime/config.ts'
import { type ProcessContext, type RunningProcess, runProcess } from '../../core/runtime/lifecycle.ts'
import { Gauge } from '../../core/runtime/metrics.ts'
import { runProgramsBySupervisor } from '../../core/runtime/program-runner.ts'
import { openCarrier } from './carrier.ts'

/** The process of the sandbox carrier. The supervisor passes its own SIP port as STROWGER_SIP_PORT. */
async function start({ config, log, metrics }: ProcessContext): Promise<RunningProcess> {
  runProgramsBySupervisor()
  const carrier = await openCarrier({ host: config.bind, port: config.sip_port, log })
  new Gauge({
    name: 'strowger_sandbox_calls',
    help: 'Calls that the sandbox carrier has now',
    registers: [metrics],
    collect() {
      this.set(carrier.calls)
    },
  })
  return { stop: async () => carrier.close() }
}

void runProcess('sandbox', loadSettings, start)
