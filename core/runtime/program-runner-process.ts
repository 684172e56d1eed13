import { runHere } from './bare-child.ts'
import { becomeUser } from './own-user.ts'
import { writePrivately } from './private-files.ts'
import type { HasRun, ToRun } from './program-runner.ts'

// Runs programs as a user of their own, for a process that may not change users any more. This one owns nothing, and
// can signal nobody else.

writePrivately()
becomeUser(Number(process.argv[2]))
process.on('message', ({ id, program, args, run }: ToRun) => {
  void runHere(program, args, run).then(end => process.send?.({ id, end } satisfies HasRun))
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
