import { runHere } from './bare-child.ts'
import { becomeUser } from './own-user.ts'
import { writePrivately } from './private-files.ts'
import type { HasRun, ToRun } from './program-runner.ts'

// Runs programs as a separate user for a process that can no longer change users. That user owns no files and cannot
// signal other processes.

writePrivately()
becomeUser(Number(process.argv[2]))
process.on('message', ({ id, program, args, run }: ToRun) => {
  void runHere(program, args, run).then(end => process.send?.({ id, end } satisfies HasRun))
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
