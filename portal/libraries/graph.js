// Drawings of graphs: cytoscape. Bundled when the server is built; js/graph.js uses it.
export { default } from 'cytoscape';
