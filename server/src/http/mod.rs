pub struct ServeConfig;
pub fn serve() {}
