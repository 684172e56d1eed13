// A customer's first steps. These files run in one process, on one platform (docs/decisions/0730).
import '../flows/first-call.test.ts'
import '../flows/voice.test.ts'
import '../flows/trunk.test.ts'
