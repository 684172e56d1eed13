/** Ids match first, because their digits are no card's. A plus begins a telephone number, `0.` a confidence. */
const ID = /\b(?:[A-Z]{2}[\da-f]{32}|[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})\b/
const CARD_LIKE = /\+?(?<!\d|\b0\.)\d(?:[ -]?\d){12,18}(?!\d)/
const ID_OR_CARD = new RegExp(`(${ID.source})|${CARD_LIKE.source}`, 'g')
/** E.164 section 6.2. */
const LONGEST_TELEPHONE_NUMBER = 15
const SHOWN = 4

/**
 * Masks all but the last four digits of possible card numbers: 13 to 19 digits that pass the Luhn check. The text keeps
 * its length, so that offsets into it stay valid.
 */
export function maskCards(text: string, mask = '*'): string {
  return text.replace(ID_OR_CARD, (found, id?: string) => {
    const digits = found.replace(/\D/g, '')
    const telephone = found.startsWith('+') && digits.length <= LONGEST_TELEPHONE_NUMBER
    return id !== undefined || telephone || !passesLuhn(digits) ? found : maskDigits(found, mask)
  })
}

/** Masks all digits but the last four. */
export function maskDigits(text: string, mask = '*'): string {
  let left = text.replace(/\D/g, '').length - SHOWN
  return text.replace(/\d/g, digit => (left-- > 0 ? mask : digit))
}

/** Checks the Luhn digit (ISO/IEC 7812-1 annex B). */
function passesLuhn(digits: string): boolean {
  let sum = 0
  for (let place = 0; place < digits.length; place++) {
    const digit = Number(digits[digits.length - 1 - place])
    const doubled = place % 2 === 1 ? digit * 2 : digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}
