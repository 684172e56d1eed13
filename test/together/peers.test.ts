// Independent peers. These files run in one process, on one platform (docs/decisions/0730).
import '../flows/baresip.test.ts'
import '../flows/media-srtp.test.ts'
import '../flows/b2bua-browser.test.ts'
import '../flows/admission-clients.test.ts'
import '../flows/trunk-tests.test.ts'
import '../flows/admission.test.ts'
