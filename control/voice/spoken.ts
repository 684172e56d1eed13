import { escapeXml } from '../../core/domain/text/xml.ts'

/** A document that speaks a text, so many times over. */
export const spoken = (text: string, times = 1): string =>
  `<Response><Say${times === 1 ? '' : ` loop="${times}"`}>${escapeXml(text)}</Say></Response>`
