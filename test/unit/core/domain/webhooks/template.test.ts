import { fillTemplate } from '../../../../../core/domain/webhooks/template.ts'
import { parse } from '../../../../../markup/parse/parse.ts'
import t from '../../../../support/harness/index.ts'

t.test('parameters fill a document, and nothing where there is none', async t => {
  t.equal(fillTemplate('<Say>Hello {{From}}, {{ CallerCity }}!</Say>', { From: '+234' }), '<Say>Hello +234, !</Say>')
  t.equal(fillTemplate('{{constructor}} {{a b}} {{}}', { a: 'x' }), ' {{a b}} {{}}')
})

t.test('no value of a caller becomes markup, wherever the document has it', async t => {
  const evil = `"'<Dial>+234</Dial>]]>-->&amp;\u0000`
  const places = [
    '<Response><Say>{{X}}</Say></Response>',
    '<Response><Say voice="{{X}}">a</Say></Response>',
    "<Response><Say voice='{{X}}'>a</Say></Response>",
    '<Response><!-- {{X}} --><Say>a</Say></Response>',
    '<Response><Say><![CDATA[{{X}}]]></Say></Response>',
  ]
  for (const place of places) {
    const parsed = parse(fillTemplate(place, { X: evil }))
    t.ok(parsed.ok, place)
    if (parsed.ok) t.notOk(JSON.stringify(parsed).includes('"name":"Dial"'), place)
  }
})
