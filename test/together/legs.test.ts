// What happens between two legs. These files run in one process, on one platform (docs/decisions/0730).
import '../flows/sip.test.ts'
import '../flows/transfer.test.ts'
import '../flows/b2bua-media.test.ts'
