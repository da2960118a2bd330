// Makes three smaller: it is built from its sources, without the parts that this page never uses, and its shaders without
// comments. The bundle must stay under 250 kB, of which three is most. Who begins to use one of these features must take its
// name out of the list; parts of shaders stand behind switches (#ifdef), so without them nothing else changes.
import { realpathSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const source = realpathSync(resolve(dirname(fileURLToPath(import.meta.url)), "node_modules/three/src"));

const SHADERS = new Set([
  // Programs of materials that no scene has.
  ...["background", "backgroundCube", "cube", "distance", "equirect", "linedashed", "meshmatcap", "meshnormal", "meshphong", "meshtoon", "points", "shadow", "vsm"]
    .map((name) => `ShaderLib/${name}`),
  // Parts of programs.
  ...["alphahash_fragment", "alphahash_pars_fragment", "batching_pars_vertex", "batching_vertex", "bumpmap_pars_fragment", "clearcoat_normal_fragment_begin",
    "clearcoat_normal_fragment_maps", "clearcoat_pars_fragment", "clipping_planes_fragment", "clipping_planes_pars_fragment", "clipping_planes_pars_vertex",
    "clipping_planes_vertex", "displacementmap_pars_vertex", "displacementmap_vertex", "envmap_common_pars_fragment", "envmap_fragment",
    "envmap_pars_fragment", "envmap_pars_vertex", "envmap_physical_pars_fragment", "envmap_vertex", "gradientmap_pars_fragment", "iridescence_fragment",
    "iridescence_pars_fragment", "lightmap_pars_fragment", "lights_phong_fragment", "lights_phong_pars_fragment", "lights_toon_fragment", "lights_toon_pars_fragment",
    "morphcolor_vertex", "morphinstance_vertex", "morphnormal_vertex", "morphtarget_pars_vertex", "morphtarget_vertex", "skinbase_vertex", "skinning_pars_vertex",
    "skinning_vertex", "skinnormal_vertex", "tonemapping_pars_fragment", "transmission_fragment", "transmission_pars_fragment"].map((name) => `ShaderChunk/${name}`),
]);
const MODULES = {
  "extras/PMREMGenerator.js": "export class PMREMGenerator { dispose() {} }",
  "renderers/webxr/WebXRManager.js": `export class WebXRManager {
    enabled = false; isPresenting = false; addEventListener() {} removeEventListener() {} setAnimationLoop() {} dispose() {} hasDepthSensing() { return false; }
    getEnvironmentBlendMode() { return "opaque"; } }`,
};

/** The text of a shader without comments, indentation and blank lines. Directives keep their spaces, which mean something. */
function small(glsl) {
  const lines = glsl.replace(/\/\*[\s\S]*?\*\//g, "").replace(/\/\/.*/g, "").split("\n").map((line) => line.trim().replace(/[ \t]+/g, " ")).filter(Boolean);
  return lines.map((line) => (line.startsWith("#") ? line : line.replace(/ ?([=+\-*/,;(){}<>]) ?/g, "$1"))).join("\n");
}

/** A plugin of esbuild. It fails where a name is no part of this version of three. */
export const three = {
  name: "three",
  setup(build) {
    const left = new Set([...SHADERS, ...Object.keys(MODULES)]);
    build.onResolve({ filter: /^three$/ }, () => ({ path: join(source, "Three.js"), sideEffects: false }));
    build.onLoad({ filter: /three[\\/]src[\\/].*\.js$/ }, async ({ path }) => {
      const name = path.slice(source.length + 1).replaceAll("\\", "/");
      const shader = /^renderers\/shaders\/(.*)\.glsl\.js$/.exec(name)?.[1];
      left.delete(shader ?? name);
      if (MODULES[name]) return { contents: MODULES[name], loader: "js" };
      if (!shader) return undefined;
      const text = await readFile(path, "utf8");
      return { contents: text.replace(/`([^`]*)`/g, (_, glsl) => `\`${SHADERS.has(shader) ? "" : small(glsl)}\``), loader: "js" };
    });
    build.onEnd(() => (left.size ? { errors: [{ text: `three has no parts ${[...left].join(", ")}` }] } : undefined));
  },
};
