/** Documents with which a person may begin. Each runs as it stands; a test checks and runs all of them. */
export const EXAMPLES: Readonly<Record<string, string>> = {
  Greeting: `<?xml version="1.0" encoding="UTF-8"?>
<Response>
  <Say>Hello. You have reached the head office.</Say>
  <Pause length="1"/>
  <Say>Goodbye.</Say>
</Response>
`,
  Menu: `<?xml version="1.0" encoding="UTF-8"?>
<Response>
  <!-- Your application answers this address with the next document. -->
  <Gather numDigits="1" timeout="5" action="https://app.example/choice">
    <Say>For sales press 1. For support press 2.</Say>
  </Gather>
  <Say>We did not hear a choice.</Say>
</Response>
`,
  'Forward a call': `<?xml version="1.0" encoding="UTF-8"?>
<Response>
  <Dial timeout="20">
    <Number>+2348030000001</Number>
  </Dial>
  <Say>Nobody is there at the moment.</Say>
</Response>
`,
  'Take a message': `<?xml version="1.0" encoding="UTF-8"?>
<Response>
  <Say>Leave a message after the tone.</Say>
  <Record maxLength="30" playBeep="true"/>
</Response>
`,
}
