/**
 * Many values in three pieces. Copying an object between threads costs per object and per key; a parcel costs three
 * pieces, whatever is in it, and its bytes are handed over without a copy.
 */
export type Parcel = readonly [numbers: readonly number[], texts: readonly string[], bytes: ArrayBuffer]

/** Below this a copy is cheaper than handing the buffer over. */
const TRANSFER_FROM_BYTES = 32 * 1024

/** The parcels' bytes, as far as they are worth handing over instead of copying. */
export function transferOf(...parcels: readonly Parcel[]): ArrayBuffer[] {
  return parcels.map(([, , bytes]) => bytes).filter((bytes) => bytes.byteLength >= TRANSFER_FROM_BYTES)
}

/** Packs values; they must be taken out in the same order, by the same methods. */
export class ParcelWriter {
  readonly #numbers: number[] = []
  readonly #texts: string[] = []
  readonly #chunks: Uint8Array[] = []
  #size = 0

  number(value: number): void {
    this.#numbers.push(value)
  }

  text(value: string): void {
    this.#texts.push(value)
  }

  bytes(value: Uint8Array): void {
    this.#numbers.push(value.length)
    this.#chunks.push(value)
    this.#size += value.length
  }

  finish(): Parcel {
    // Never empty: Node 22 hands a view of an empty buffer to SQLite as NULL, and not as no bytes.
    const all = new Uint8Array(Math.max(1, this.#size))
    let offset = 0
    for (const chunk of this.#chunks) {
      all.set(chunk, offset)
      offset += chunk.length
    }
    return [this.#numbers, this.#texts, all.buffer]
  }
}

export class ParcelReader {
  readonly #numbers: readonly number[]
  readonly #texts: readonly string[]
  readonly #bytes: ArrayBuffer
  #number = 0
  #text = 0
  #offset = 0

  constructor([numbers, texts, bytes]: Parcel) {
    this.#numbers = numbers
    this.#texts = texts
    this.#bytes = bytes
  }

  number(): number {
    return this.#numbers[this.#number++] as number
  }

  text(): string {
    return this.#texts[this.#text++] as string
  }

  /** A view of the parcel's bytes, not a copy. */
  bytes(): Uint8Array {
    const length = this.number()
    const view = new Uint8Array(this.#bytes, this.#offset, length)
    this.#offset += length
    return view
  }
}
