// Scripts on live calls. These files run in one process, on one platform (docs/decisions/0730).
import '../flows/verbs-dial.test.ts'
import '../flows/live-control.test.ts'
import '../flows/webhook-faults.test.ts'
