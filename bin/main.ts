import { writePrivately } from '../core/runtime/private-files.ts'
import { traceTypeScript } from '../core/runtime/typescript-stacks.ts'
import { programFor } from './commands.ts'
import { orSayWhy } from './say.ts'
import { guardTerminal } from './terminal.ts'

traceTypeScript()
writePrivately()
guardTerminal(process.stdout)
guardTerminal(process.stderr)
void programFor(process.argv.slice(2)).then(program => orSayWhy(() => program.parseAsync()))
